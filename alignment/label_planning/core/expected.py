"""What a draw of chats may bring, told from what people said under either verdict."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from alignment.statistics.agreement import Confusion
from alignment.statistics.label_needs import Need

RANGE = 0.9
OTHERS = 0.2  # of a draw left open, the least share of chats that the judge does not call False


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


def draw_words(need: Need, shares: Shares, *, there: int) -> str:
    """The draw that would bring the missing False answers, of the `there` chats that the judge calls False.

    '' where none is missing, or no such chat is there.

    >>> from alignment.statistics.label_needs import LabelCounts, needs
    >>> need = needs(LabelCounts(true=90, false=12))[1]
    >>> draw_words(need, Shares(Seen(false=35, true=13)), there=200)
    'draw 25 chats that the judge calls False: about 18 will be False (13 to 22)'
    """
    seen = shares.judge_false
    n = min(chats_for(need.missing_false, share=seen.share), there)
    if not n:
        return ""
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
    """The smallest draw of both kinds that is expected to bring every criterion what it misses.

    A kind that gives none has no chance, and no weight repairs that: the others are at least a fifth.

    Parameters
    ----------
    wanted : one entry a criterion.
    suspect, other : chats there are of either kind; the draw stays within them.

    Examples
    --------
    >>> first_sizes([Wanted(18, 0, 18, 0.72, 0.1)], suspect=100, other=500)
    Sizes(suspect=25, other=7)
    >>> first_sizes([Wanted(18, 9, 40, 0.72, 0.1)], suspect=10, other=500)
    Sizes(suspect=10, other=108)
    """
    rare = max((chats_for(one.false, share=one.share_suspect) for one in wanted), default=0)
    rare = min(rare, suspect)
    rest = max((_others(one, rare) for one in wanted), default=0)
    if rest and not rare:
        rare = min(1, suspect)
    return Sizes(rare, min(max(rest, others_beside(rare)), other))


def others_beside(suspect: int) -> int:
    """The fewest others in a draw with so many that the judge calls False: a fifth of the whole.

    >>> others_beside(25), others_beside(1), others_beside(0)
    (7, 1, 0)
    """
    return math.ceil(suspect * OTHERS / (1 - OTHERS) - 1e-9)


def split_of(chats: int, *, wanted: int, suspect: int, other: int) -> Sizes:
    """So many chats as both kinds: the `wanted` suspect ones, as far as either kind keeps a share.

    Parameters
    ----------
    chats : at most suspect + other, the chats there are of either kind.

    Examples
    --------
    >>> split_of(20, wanted=30, suspect=100, other=500), split_of(20, wanted=0, suspect=100, other=500)
    (Sizes(suspect=16, other=4), Sizes(suspect=1, other=19))
    """
    both = chats > 1
    most = min(suspect, chats - min(other, math.ceil(chats * OTHERS - 1e-9) if both else 0))
    least = max(chats - other, min(1, suspect) if both else 0)
    rare = max(min(wanted, most), least)
    return Sizes(rare, chats - rare)


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
