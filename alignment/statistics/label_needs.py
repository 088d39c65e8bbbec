"""Label needs: how many more labels each decision needs, and of which answer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

MOSTLY_TRUE = 0.85  # above this share of True, replacing a rater needs three times as many labels
EVEN = 0.7  # up to this share of either answer, a criterion counts as even for kappa


class LabelKind(StrEnum):
    """Kinds of labels that a decision counts."""

    CHATS = "chats"
    TRUE = "true"
    FALSE = "false"
    RANDOM = "random"
    THREE = "three_raters"
    THREE_FALSE = "three_raters_false"


class Decision(StrEnum):
    """Decisions that labels support, by rising need."""

    FIRST_LOOK = "first_look"
    STATUS = "status"
    BADGE = "badge"
    TNR_LOSS = "tnr_loss"
    GATE_ALONE = "gate_alone"
    GATE = "gate"
    GATE_FINE = "gate_fine"
    SINGLE = "single"
    REPLACE = "replace_rater"
    KAPPA = "kappa"
    RATE = "production_rate"


# Name, short name for a column head, and what this number of labels gives.
LABELS: Mapping[Decision, tuple[str, str, str]] = MappingProxyType(
    {
        Decision.FIRST_LOOK: (
            "First look: find prompt bugs",
            "First look",
            "if agreement is 0.90, the interval is 0.74–0.97",
        ),
        Decision.STATUS: ("Give a status", "Status", "aligned or not aligned, by the status policy"),
        Decision.BADGE: (
            "Know agreement to ±6 points",
            "±6 points",
            "agreement ±6 points; if TNR is 0.80, the interval is 0.63–0.91",
        ),
        Decision.TNR_LOSS: ("Block a TNR loss of 20 points", "TNR −20", "detected in 94%"),
        Decision.GATE_ALONE: (
            "Pass the gate with one criterion",
            "Gate",
            "with fewer the gate is inconclusive at best",
        ),
        Decision.GATE: (
            "Gate over all criteria",
            "Gate, all",
            "a loss of 8 points on one criterion is detected in 98%",
        ),
        Decision.GATE_FINE: ("Gate at −6 points on one, −2 overall", "Gate −6/−2", "detected in 96% and 92%"),
        Decision.SINGLE: ("Release one criterion, margin 8 points", "Alone", "an equal prompt passes in 93%"),
        Decision.REPLACE: (
            "Let the judge replace a rater",
            "Replace",
            "an equal judge passes in 77–88%, with 300 chats in 98–100%",
        ),
        Decision.KAPPA: ("Report kappa as a number", "Kappa", "accurate to about ±0.13"),
        Decision.RATE: ("Production rate ±5 points", "Rate", "interval 0.10 wide with 2,000 judged chats"),
    }
)
COUNTED: Mapping[LabelKind, str] = MappingProxyType(
    {
        LabelKind.CHATS: "chats",
        LabelKind.TRUE: "True",
        LabelKind.FALSE: "False",
        LabelKind.RANDOM: "randomly sampled",
        LabelKind.THREE: "with three raters",
        LabelKind.THREE_FALSE: "of these False",
    }
)
# Not for subjective criteria: they never block a release.
BLOCKING = frozenset(
    {Decision.TNR_LOSS, Decision.GATE_ALONE, Decision.GATE, Decision.GATE_FINE, Decision.SINGLE}
)
# Decisions that `label_summary` names, with their purpose.
SUMMARY: Mapping[Decision, str] = MappingProxyType(
    {
        Decision.STATUS: "for a status",
        Decision.BADGE: "for ±6 points",
        Decision.GATE_ALONE: "for the gate",
    }
)


@dataclass(frozen=True, slots=True)
class Minimums:
    """Labels that the policies require.

    status_true, status_false : human True and False labels for a status.
    gate_alone : chats with which one criterion can pass the gate.
    """

    status_true: int = 30
    status_false: int = 30
    gate_alone: int = 100


START_VALUES = Minimums()


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Labelled chats of a criterion.

    Parameters
    ----------
    true, false : chats with this consensus.
    three, three_false : of all these and of the False ones, chats with three raters or more.
    random : labelled chats sampled with a known probability.
    tier : of the criterion; "subjective" never blocks.
    """

    true: int
    false: int
    three: int = 0
    three_false: int = 0
    random: int = 0
    tier: str = "simple"

    @property
    def n(self) -> int:
        """Chats with a consensus of True or False."""
        return self.true + self.false

    @property
    def prevalence(self) -> float | None:
        """Share of True, in [0, 1]. None without a chat."""
        return self.true / self.n if self.n else None

    def have(self, asked: LabelKind) -> int:
        """Number of labels of this kind."""
        return {
            LabelKind.CHATS: self.n,
            LabelKind.TRUE: self.true,
            LabelKind.FALSE: self.false,
            LabelKind.RANDOM: self.random,
            LabelKind.THREE: self.three,
            LabelKind.THREE_FALSE: self.three_false,
        }[asked]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of a decision: a kind of label, the number there is and the number needed."""

    asked: LabelKind
    have: int
    want: int

    @property
    def words(self) -> str:
        """The kind of label, in words."""
        return COUNTED[self.asked]

    @property
    def missing(self) -> int:
        """Number still missing."""
        return max(0, self.want - self.have)


@dataclass(frozen=True, slots=True)
class Need:
    """Labels that one decision needs on a criterion. Without parts the decision does not apply."""

    decision: Decision
    parts: tuple[Requirement, ...]

    @property
    def label(self) -> str:
        """Name of the decision."""
        return LABELS[self.decision][0]

    @property
    def short(self) -> str:
        """Short name, for a column head."""
        return LABELS[self.decision][1]

    @property
    def buys(self) -> str:
        """Accuracy that this number of labels gives."""
        return LABELS[self.decision][2]

    @property
    def applies(self) -> bool:
        """Whether the decision applies to this criterion."""
        return bool(self.parts)

    @property
    def met(self) -> bool:
        """Whether there are enough labels."""
        return self.applies and not any(part.missing for part in self.parts)

    def missing(self, *asked: LabelKind) -> int:
        """Number missing of these kinds."""
        return sum(part.missing for part in self.parts if part.asked in asked)

    @property
    def missing_false(self) -> int:
        """Number of False labels missing."""
        return self.missing(LabelKind.FALSE, LabelKind.THREE_FALSE)

    @property
    def missing_chats(self) -> int:
        """Number of chats missing in all: at least the sum of both answers."""
        whole = self.missing(LabelKind.CHATS, LabelKind.RANDOM, LabelKind.THREE)
        return max(whole, self.missing_false + self.missing(LabelKind.TRUE))

    @property
    def sentence(self) -> str:
        """What to do next, in words."""
        if not self.applies:
            return "not applicable: a subjective criterion never blocks"
        if self.met:
            return "enough labels"
        return _sentence(self)


def needs(counts: LabelCounts, minimums: Minimums = START_VALUES) -> list[Need]:
    """Needs of every decision, in the order of `Decision`.

    Parameters
    ----------
    counts : the criterion's labels, verdicts or not.
    minimums : what the policies require; the other numbers are fixed.

    Notes
    -----
    Numbers from the simulations in docs/review-alignment.md, "Plan labels".

    Examples
    --------
    >>> need_of(Decision.STATUS, LabelCounts(true=90, false=12)).sentence
    'label 18 more chats with answer False'
    """
    return [_need(decision, counts, minimums) for decision in Decision]


def need_of(decision: Decision, counts: LabelCounts, minimums: Minimums = START_VALUES) -> Need:
    """Return the need of one decision; parameters as in `needs`."""
    return _need(decision, counts, minimums)


def label_summary(every: Iterable[Need]) -> str:
    """Say how many more chats a status, ±6 points and the gate need; '' if there are enough for all.

    Parameters
    ----------
    every : the needs of one criterion.

    Examples
    --------
    >>> label_summary(needs(LabelCounts(true=19, false=4)))
    '37 more for a status, 77 for ±6 points, 77 for the gate'
    >>> label_summary(needs(LabelCounts(true=60, false=30)))
    '10 more for ±6 points, 10 for the gate'
    """
    missing = [need for need in every if need.decision in SUMMARY and need.missing_chats]
    return ", ".join(
        f"{need.missing_chats:,}{'' if place else ' more'} {SUMMARY[need.decision]}"
        for place, need in enumerate(missing)
    )


def _need(decision: Decision, counts: LabelCounts, minimums: Minimums) -> Need:
    if counts.tier == "subjective" and decision in BLOCKING:
        return Need(decision, ())
    needed = _needed(decision, counts.prevalence, minimums)
    return Need(
        decision, tuple(Requirement(asked, counts.have(asked), want) for asked, want in needed.items())
    )


def _needed(decision: Decision, prevalence: float | None, minimums: Minimums) -> dict[LabelKind, int]:
    """Number of labels by kind; the table in docs/review-alignment.md, "Plan labels"."""
    mostly_true = prevalence is not None and prevalence > MOSTLY_TRUE
    even = prevalence is None or max(prevalence, 1 - prevalence) <= EVEN
    match decision:
        case Decision.FIRST_LOOK:
            return {LabelKind.CHATS: 30}
        case Decision.STATUS:
            return {LabelKind.TRUE: minimums.status_true, LabelKind.FALSE: minimums.status_false}
        case Decision.BADGE:
            return {LabelKind.CHATS: 100, LabelKind.TRUE: 30, LabelKind.FALSE: 30}
        case Decision.TNR_LOSS:
            return {LabelKind.FALSE: 50}
        case Decision.GATE_ALONE:
            return {LabelKind.CHATS: minimums.gate_alone}
        case Decision.GATE:
            return {LabelKind.CHATS: 200, LabelKind.TRUE: 30, LabelKind.FALSE: 30}
        case Decision.GATE_FINE:
            return {LabelKind.CHATS: 400, LabelKind.FALSE: 50}
        case Decision.SINGLE:
            return {LabelKind.CHATS: 300}
        case Decision.REPLACE:
            factor = 3 if mostly_true else 1
            return {LabelKind.THREE: 100 * factor, LabelKind.THREE_FALSE: 15 * factor}
        case Decision.KAPPA:
            return {LabelKind.CHATS: 100 if even else 400}
        case Decision.RATE:
            return {LabelKind.RANDOM: 200}


def _sentence(need: Need) -> str:
    sampled = "randomly sampled " if need.decision == Decision.RATE else ""
    raters = " with three raters" if need.decision == Decision.REPLACE else ""
    chats = f"{sampled}chat{'' if need.missing_chats == 1 else 's'}{raters}"
    return _to_label(need.missing_chats, need.missing(LabelKind.TRUE), need.missing_false, chats=chats)


def _to_label(n: int, true: int, false: int, *, chats: str = "") -> str:
    """The number of chats to label, and how many of them have to be True and False."""
    start = f"label {n} more {chats or ('chat' if n == 1 else 'chats')}"
    answers = [f"{number} {answer}" for number, answer in ((true, "True"), (false, "False")) if number]
    if not answers:
        return start
    if n in (true, false):
        return f"{start} with answer {'True' if true else 'False'}"
    return f"{start}{':' if n == true + false else ', at least'} {' and '.join(answers)}"
