"""Outcomes: what a pair of human answer and verdict means for the chatbot, in the words of every page."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Outcome(StrEnum):
    """Whether judge and raters let the bot pass."""

    BOTH_PASSED = "both_passed"
    MISSED_FAILURE = "missed_failure"
    FALSE_ALARM = "false_alarm"
    BOTH_FAILED = "both_failed"

    @property
    def caption(self) -> "Caption":
        """Its words."""
        return CAPTIONS[self]


@dataclass(frozen=True, slots=True)
class Caption:
    """An outcome's name, its plural, and the answers that it stands for."""

    name: str
    plural: str
    meaning: str

    def count(self, n: int) -> str:
        """Return the number with the name.

        >>> CAPTIONS[Outcome.MISSED_FAILURE].count(2)
        '2 missed failures'
        """
        return f"{n:,} {self.name if n == 1 else self.plural}"


CAPTIONS: Mapping[Outcome, Caption] = MappingProxyType(
    {
        Outcome.BOTH_PASSED: Caption("both passed", "both passed", "judge passed, raters passed"),
        Outcome.MISSED_FAILURE: Caption("missed failure", "missed failures", "judge passed, raters failed"),
        Outcome.FALSE_ALARM: Caption("false alarm", "false alarms", "judge failed, raters passed"),
        Outcome.BOTH_FAILED: Caption("both failed", "both failed", "judge failed, raters failed"),
    }
)
# Cells of a confusion matrix: the human answer, then the verdict.
CELL_ANSWERS: Mapping[str, tuple[bool, bool]] = MappingProxyType(
    {"tp": (True, True), "fn": (True, False), "fp": (False, True), "tn": (False, False)}
)


def outcome_of(*, human: bool, judge: bool, passes_when: bool) -> Outcome:
    """Return the outcome of a human answer and a verdict.

    Parameters
    ----------
    human, judge : the answers to the criterion's question.
    passes_when : the answer that is good for the chatbot.

    Examples
    --------
    >>> outcome_of(human=True, judge=False, passes_when=True).caption.name
    'false alarm'
    >>> outcome_of(human=True, judge=False, passes_when=False).caption.name
    'missed failure'
    """
    by_passing = {
        (True, True): Outcome.BOTH_PASSED,
        (False, True): Outcome.MISSED_FAILURE,
        (True, False): Outcome.FALSE_ALARM,
        (False, False): Outcome.BOTH_FAILED,
    }
    return by_passing[human is passes_when, judge is passes_when]


def cell_outcome(cell: str, *, passes_when: bool) -> Outcome:
    """Return the outcome of a cell of the confusion matrix: tp, fn, fp or tn.

    >>> cell_outcome("fp", passes_when=True).value
    'missed_failure'
    """
    human, judge = CELL_ANSWERS[cell]
    return outcome_of(human=human, judge=judge, passes_when=passes_when)


def outcome_counts(confusion: Mapping[str, int], *, passes_when: bool) -> dict[Outcome, int]:
    """Count the chats of a confusion matrix by outcome.

    >>> outcome_counts({"tp": 1, "fn": 2, "fp": 3, "tn": 4}, passes_when=False)[Outcome.FALSE_ALARM]
    3
    """
    counts = {cell_outcome(cell, passes_when=passes_when): confusion[cell] for cell in CELL_ANSWERS}
    return {outcome: counts[outcome] for outcome in Outcome}
