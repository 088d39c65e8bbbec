"""How many more labels a decision needs, of which answer, and what a draw of chats may bring."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from alignment.core.agreement import Confusion

MOSTLY_TRUE = 0.85  # above, "may replace a rater" asks for three times as much
EVEN = 0.7  # up to this share of either answer kappa is taken for that of an even criterion
RANGE = 0.9


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
        Decision.REPLACE: ("The judge may replace a rater", "Replace", "an equal judge passes in 73–100%"),
        Decision.KAPPA: ("Kappa usable as a number", "Kappa", "known to about ±.13"),
        Decision.RATE: ("Production rate ±5 points", "Rate", "interval .07 wide with 2,000 judged chats"),
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


# ---------- what a draw may bring ----------


@dataclass(frozen=True, slots=True)
class Seen:
    """Among chats of one verdict, how often people said False, and True."""

    false: int = 0
    true: int = 0

    @property
    def share(self) -> float:
        """Share of human False, shrunk to (x + 1) / (n + 2): half where nothing was seen."""
        return (self.false + 1) / (self.false + self.true + 2)


@dataclass(frozen=True, slots=True)
class Shares:
    """What people say where the judge says False, where it says True, and where it says neither."""

    judge_false: Seen = field(default_factory=Seen)
    judge_true: Seen = field(default_factory=Seen)

    @property
    def silent(self) -> Seen:
        """Nothing is known of a chat without an answer of the judge: all seen together."""
        both = self.judge_false, self.judge_true
        return Seen(sum(one.false for one in both), sum(one.true for one in both))


@dataclass(frozen=True, slots=True)
class Expected:
    """Chats that people may call False among `n`: about so many, and the range that holds in 90%."""

    n: int
    about: float
    low: int
    high: int

    @property
    def words(self) -> str:
        """`about 18 will be False (13 to 21)`."""
        span = f" ({self.low} to {self.high})" if self.low < self.high else ""
        return f"about {round(self.about)} will be False{span}"


def shares_of(table: Confusion) -> Shares:
    """From the chats that both have answered.

    >>> round(shares_of(Confusion(60, 5, 2, 13)).judge_false.share, 2)
    0.7
    """
    return Shares(Seen(false=table.tn, true=table.fn), Seen(false=table.fp, true=table.tp))


def expected_false(drawn: Iterable[tuple[int, Seen]]) -> Expected:
    """How many of the drawn chats people may call False, and in which range.

    Parameters
    ----------
    drawn : (chats to draw, what was seen among such chats), by verdict.

    Returns
    -------
    Expected : the mean, and the central 90% of a beta-binomial: wide where little was seen.

    Examples
    --------
    >>> expected_false([(25, Seen(false=35, true=13))]).words
    'about 18 will be False (13 to 22)'
    """
    parts = [(n, seen) for n, seen in drawn if n]
    chances: NDArray[np.float64] = np.ones(1)
    for n, seen in parts:
        chances = np.convolve(chances, _beta_binomial(n, seen.false + 1, seen.true + 1))
    up_to = np.cumsum(chances)
    tail = (1 - RANGE) / 2
    low, high = (int(np.searchsorted(up_to, chance)) for chance in (tail, 1 - tail))
    total = sum(n for n, _ in parts)
    return Expected(total, sum(n * seen.share for n, seen in parts), low, min(high, total))


def _beta_binomial(n: int, a: float, b: float) -> NDArray[np.float64]:
    """The chance of 0…n, shape (n + 1,). NB: scipy.stats has it, and takes seconds to import."""
    k = np.arange(n + 1)
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    chances: NDArray[np.float64] = np.exp(choose + betaln(k + a, n - k + b) - betaln(a, b))
    return chances


def chats_for(more: int, *, share: float) -> int:
    """How many chats to draw to expect so many of an answer that comes with this share.

    >>> chats_for(18, share=0.72), chats_for(0, share=0.5)
    (25, 0)
    """
    return math.ceil(more / share - 1e-9) if more else 0


def draw_words(need: Need, shares: Shares) -> str:
    """The draw that would bring the missing False answers; '' where none is missing.

    >>> need = needs(LabelCounts(true=90, false=12))[1]
    >>> draw_words(need, Shares(Seen(false=35, true=13)))
    'draw 25 chats that the judge calls False: about 18 will be False (13 to 22)'
    """
    if not need.missing_false:
        return ""
    seen = shares.judge_false
    n = chats_for(need.missing_false, share=seen.share)
    return (
        f"draw {n} chat{'' if n == 1 else 's'} that the judge calls False: "
        f"{expected_false([(n, seen)]).words}"
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """A criterion's missing labels, and the share of human False to expect of the two kinds of chat."""

    false: int
    true: int
    chats: int
    share_suspect: float
    share_other: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many chats to draw that the judge calls False (`suspect`), and how many others."""

    suspect: int
    other: int


def first_sizes(wanted: Sequence[Wanted], *, suspect: int, other: int) -> Sizes:
    """The smallest draw that is expected to bring every criterion what it misses.

    Parameters
    ----------
    wanted : one entry a criterion.
    suspect, other : chats there are of either kind; the draw stays within them.

    Examples
    --------
    >>> first_sizes([Wanted(18, 0, 18, 0.72, 0.1)], suspect=100, other=500)
    Sizes(suspect=25, other=0)
    >>> first_sizes([Wanted(18, 9, 40, 0.72, 0.1)], suspect=10, other=500)
    Sizes(suspect=10, other=108)
    """
    rare = max((chats_for(one.false, share=one.share_suspect) for one in wanted), default=0)
    rare = min(rare, suspect)
    rest = max((_others(one, rare) for one in wanted), default=0)
    return Sizes(rare, min(rest, other))


def _others(one: Wanted, rare: int) -> int:
    """Chats of the other kind that bring what the suspect ones do not."""
    false = one.false - rare * one.share_suspect
    true = one.true - rare * (1 - one.share_suspect)
    return max(
        0,
        one.chats - rare,
        math.ceil(false / one.share_other - 1e-9),
        math.ceil(true / (1 - one.share_other) - 1e-9),
    )
