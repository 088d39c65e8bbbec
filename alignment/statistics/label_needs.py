"""How many more labels a decision needs, and of which answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

MOSTLY_TRUE = 0.85  # above, "may replace a rater" asks for three times as much
EVEN = 0.7  # up to this share of either answer kappa is taken for that of an even criterion


class Asked(StrEnum):
    """What of the labels a decision counts."""

    CHATS = "chats"
    TRUE = "true"
    FALSE = "false"
    RANDOM = "random"
    THREE = "three_raters"
    THREE_FALSE = "three_raters_false"


class Decision(StrEnum):
    """What labels can be good for, by rising need."""

    FIRST_LOOK = "first_look"
    BADGE = "badge"
    TNR_LOSS = "tnr_loss"
    GATE = "gate"
    GATE_FINE = "gate_fine"
    SINGLE = "single"
    REPLACE = "replace_rater"
    KAPPA = "kappa"
    RATE = "production_rate"


# In words, as the head of a column, and what so many labels are good for.
LABELS: Mapping[Decision, tuple[str, str, str]] = MappingProxyType(
    {
        Decision.FIRST_LOOK: (
            "First look, find bugs of the prompt",
            "First look",
            "agreement .90 known to .74–.97",
        ),
        Decision.BADGE: (
            "Show TPR and TNR with a badge",
            "Badge",
            "agreement ±6 points, TNR .80 known to .63–.91",
        ),
        Decision.TNR_LOSS: ("Block a TNR loss of 20 points", "TNR −20", "found in 94%"),
        Decision.GATE: ("Regression gate", "Gate", "a loss of 8 points in one criterion found in 98%"),
        Decision.GATE_FINE: ("Gate at −6 points in one, −2 in all", "Gate −6/−2", "found in 96% and 92%"),
        Decision.SINGLE: ("Release one criterion, margin 5 points", "Alone", "an equal prompt passes in 90%"),
        Decision.REPLACE: (
            "The judge may replace a rater",
            "Replace",
            "an equal judge passes in 77–88%, on 300 in 98–100%",
        ),
        Decision.KAPPA: ("Kappa usable as a number", "Kappa", "known to about ±.13"),
        Decision.RATE: ("Production rate ±5 points", "Rate", "interval .10 wide with 2,000 judged chats"),
    }
)
COUNTED: Mapping[Asked, str] = MappingProxyType(
    {
        Asked.CHATS: "chats",
        Asked.TRUE: "True",
        Asked.FALSE: "False",
        Asked.RANDOM: "drawn at random",
        Asked.THREE: "with three raters",
        Asked.THREE_FALSE: "of these False",
    }
)
# A subjective criterion is reported and never blocks.
BLOCKING = frozenset({Decision.TNR_LOSS, Decision.GATE, Decision.GATE_FINE, Decision.SINGLE})


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """A criterion's labels.

    true, false : chats that people answered so. three, three_false : those with three raters or more.
    random : chats with a label that were drawn with a known probability. tier : "subjective" never blocks.
    """

    true: int
    false: int
    three: int = 0
    three_false: int = 0
    random: int = 0
    tier: str = "simple"

    @property
    def n(self) -> int:
        """Chats that people answered."""
        return self.true + self.false

    @property
    def prevalence(self) -> float | None:
        """The share that people answered True."""
        return self.true / self.n if self.n else None

    def have(self, asked: Asked) -> int:
        """How many there are of what a decision counts."""
        return {
            Asked.CHATS: self.n,
            Asked.TRUE: self.true,
            Asked.FALSE: self.false,
            Asked.RANDOM: self.random,
            Asked.THREE: self.three,
            Asked.THREE_FALSE: self.three_false,
        }[asked]


@dataclass(frozen=True, slots=True)
class Part:
    """One count that a decision asks for."""

    asked: Asked
    have: int
    want: int

    @property
    def words(self) -> str:
        """What is counted."""
        return COUNTED[self.asked]

    @property
    def missing(self) -> int:
        """How many more."""
        return max(0, self.want - self.have)


@dataclass(frozen=True, slots=True)
class Need:
    """What one decision asks of a criterion's labels. Without parts it does not apply."""

    decision: Decision
    parts: tuple[Part, ...]

    @property
    def label(self) -> str:
        """The decision in words."""
        return LABELS[self.decision][0]

    @property
    def short(self) -> str:
        """The same as the head of a column."""
        return LABELS[self.decision][1]

    @property
    def buys(self) -> str:
        """What so many labels are good for."""
        return LABELS[self.decision][2]

    @property
    def applies(self) -> bool:
        """Whether it is a decision to be taken on this criterion."""
        return bool(self.parts)

    @property
    def met(self) -> bool:
        """Whether the labels are there."""
        return self.applies and not any(part.missing for part in self.parts)

    def missing(self, *asked: Asked) -> int:
        """How many more of one of these counts."""
        return sum(part.missing for part in self.parts if part.asked in asked)

    @property
    def missing_false(self) -> int:
        """More chats that people would call False."""
        return self.missing(Asked.FALSE, Asked.THREE_FALSE)

    @property
    def missing_chats(self) -> int:
        """More chats in all: at least those of both answers."""
        whole = self.missing(Asked.CHATS, Asked.RANDOM, Asked.THREE)
        return max(whole, self.missing_false + self.missing(Asked.TRUE))

    @property
    def sentence(self) -> str:
        """What to do next, in words."""
        if not self.applies:
            return "never blocks: a subjective criterion"
        if self.met:
            return "enough labels"
        return _sentence(self)


def needs(counts: LabelCounts) -> list[Need]:
    """What each decision asks for, in the order of `Decision`.

    Examples
    --------
    >>> badge = needs(LabelCounts(true=90, false=12))[1]
    >>> badge.sentence
    'label 18 more chats that people would call False'
    """
    return [_need(decision, counts) for decision in Decision]


def missing_labels(*, true: int, false: int, minimum_true: int, minimum_false: int) -> str:
    """What to label before a status can be given; '' where there are enough of both answers.

    >>> missing_labels(true=90, false=12, minimum_true=30, minimum_false=30)
    'label 18 more chats that people would call False'
    """
    more = max(0, minimum_true - true), max(0, minimum_false - false)
    return _to_label(sum(more), *more) if any(more) else ""


def _need(decision: Decision, counts: LabelCounts) -> Need:
    if counts.tier == "subjective" and decision in BLOCKING:
        return Need(decision, ())
    wanted = _wanted(decision, counts.prevalence)
    return Need(decision, tuple(Part(asked, counts.have(asked), want) for asked, want in wanted.items()))


def _wanted(decision: Decision, prevalence: float | None) -> dict[Asked, int]:
    """By the table of docs/reports.md, "Label planning"."""
    mostly_true = prevalence is not None and prevalence > MOSTLY_TRUE
    even = prevalence is None or max(prevalence, 1 - prevalence) <= EVEN
    match decision:
        case Decision.FIRST_LOOK:
            return {Asked.CHATS: 30}
        case Decision.BADGE:
            return {Asked.CHATS: 100, Asked.TRUE: 30, Asked.FALSE: 30}
        case Decision.TNR_LOSS:
            return {Asked.FALSE: 50}
        case Decision.GATE:
            return {Asked.CHATS: 200, Asked.TRUE: 30, Asked.FALSE: 30}
        case Decision.GATE_FINE:
            return {Asked.CHATS: 400, Asked.FALSE: 50}
        case Decision.SINGLE:
            return {Asked.CHATS: 300}
        case Decision.REPLACE:
            factor = 3 if mostly_true else 1
            return {Asked.THREE: 100 * factor, Asked.THREE_FALSE: 15 * factor}
        case Decision.KAPPA:
            return {Asked.CHATS: 100 if even else 400}
        case Decision.RATE:
            return {Asked.RANDOM: 200}


def _sentence(need: Need) -> str:
    raters = " with three raters" if need.decision == Decision.REPLACE else ""
    drawn = " drawn at random" if need.decision == Decision.RATE else ""
    return _to_label(need.missing_chats, need.missing(Asked.TRUE), need.missing_false, such=raters or drawn)


def _to_label(n: int, true: int, false: int, *, such: str = "") -> str:
    """So many more chats, and how many of them people should answer True, and False."""
    begin = f"label {n} more chat{'' if n == 1 else 's'}{such}"
    kinds = [
        f"{number} that people would call {word}"
        for number, word in ((true, "True"), (false, "False"))
        if number
    ]
    if not kinds:
        return begin
    if n in (true, false):
        return f"{begin}{kinds[0].removeprefix(str(n))}"
    return f"{begin}{':' if n == true + false else ', at least'} {' and '.join(kinds)}"
