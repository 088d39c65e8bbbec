"""What a draw of chats may bring, told from what people said under either verdict."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from alignment.core.agreement import Confusion
from alignment.core.label_planning.needs import Need

RANGE = 0.9


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

    >>> from alignment.core.label_planning.needs import LabelCounts, needs
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
