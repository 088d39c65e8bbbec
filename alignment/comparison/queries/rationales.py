"""Rationales of labels and verdicts, short enough for a list."""

from collections.abc import Sequence

from evaluation.models.runs import Verdict
from evaluation.runs.queries.steps import final_rationales

LONGEST_WORDS = 280  # characters of a rationale in the list


def judge_rationales(verdicts: Sequence[Verdict]) -> dict[int, str]:
    """The sentence that the formatter kept, else the beginning of the rationale; by verdict id."""
    final = final_rationales(verdicts)
    return {
        row.pk: short_rationale(row.explanation or row.rationale or final.get(row.pk, "")) for row in verdicts
    }


def short_rationale(text: str) -> str:
    """The beginning of a rationale on one line."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_WORDS else f"{words[: LONGEST_WORDS - 1].rstrip()}…"
