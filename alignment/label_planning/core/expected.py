"""The number of False labels that a sample is expected to bring, and the sample sizes that follow."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from alignment.statistics.agreement import Confusion
from alignment.statistics.label_needs import Need

RANGE = 0.9
OTHERS = 0.2  # smallest share of chats not judged False, unless the request names both sizes


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Human False and True labels among chats with one verdict."""

    false: int = 0
    true: int = 0

    @property
    def share(self) -> float:
        """Share of human False, shrunk to (x + 1) / (n + 2): one half without labels."""
        return (self.false + 1) / (self.false + self.true + 2)


@dataclass(frozen=True, slots=True)
class Shares:
    """Human labels where the judge returned False, and where it returned True."""

    judge_false: AnswerCounts = field(default_factory=AnswerCounts)
    judge_true: AnswerCounts = field(default_factory=AnswerCounts)

    @property
    def no_verdict(self) -> AnswerCounts:
        """The estimate for chats without a verdict: both counts together."""
        both = self.judge_false, self.judge_true
        return AnswerCounts(sum(one.false for one in both), sum(one.true for one in both))


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected number of human False labels among `n` chats: the mean and the 90% range."""

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
    """Count the human labels under each verdict.

    >>> round(shares_of(Confusion(60, 5, 2, 13)).judge_false.share, 2)
    0.7
    """
    return Shares(AnswerCounts(false=table.tn, true=table.fn), AnswerCounts(false=table.fp, true=table.tp))


def expected_false(groups: Iterable[tuple[int, AnswerCounts]]) -> Expected:
    """Estimate how many sampled chats will get a human False label.

    Parameters
    ----------
    groups : (chats to sample, earlier labels on such chats), by verdict.

    Returns
    -------
    Expected : the mean, and the central 90% of a beta-binomial: wide where labels are few.

    Examples
    --------
    >>> expected_false([(25, AnswerCounts(false=35, true=13))]).words
    'about 18 will be False (13 to 22)'
    """
    sampled = [(n, counts) for n, counts in groups if n]
    chances: NDArray[np.float64] = np.ones(1)
    for n, counts in sampled:
        chances = np.convolve(chances, _beta_binomial(n, counts.false + 1, counts.true + 1))
    up_to = np.cumsum(chances)
    tail = (1 - RANGE) / 2
    low, high = (int(np.searchsorted(up_to, chance)) for chance in (tail, 1 - tail))
    total = sum(n for n, _ in sampled)
    return Expected(total, sum(n * counts.share for n, counts in sampled), low, min(high, total))


def _beta_binomial(n: int, a: float, b: float) -> NDArray[np.float64]:
    """Probabilities of 0…n, shape (n + 1,). NB: importing scipy.stats for this takes seconds."""
    k = np.arange(n + 1)
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    chances: NDArray[np.float64] = np.exp(choose + betaln(k + a, n - k + b) - betaln(a, b))
    return chances


def chats_needed(labels: int, *, share: float) -> int:
    """Return the sample size at which `labels` answers of one kind are expected.

    Parameters
    ----------
    labels : answers needed.
    share : expected share of this answer, above 0.

    >>> chats_needed(18, share=0.72), chats_needed(0, share=0.5)
    (25, 0)
    """
    return math.ceil(labels / share - 1e-9) if labels else 0


def sample_advice(need: Need, shares: Shares, *, available: int) -> str:
    """Describe the sample that brings the missing False labels.

    Parameters
    ----------
    available : eligible chats that the judge marked False.

    Returns
    -------
    str : '' if no False label is missing or no such chat is available.

    >>> from alignment.statistics.label_needs import LabelCounts, needs
    >>> need = needs(LabelCounts(true=90, false=12))[1]
    >>> sample_advice(need, Shares(AnswerCounts(false=35, true=13)), available=200)
    'sample 25 chats judged False: about 18 will be False (13 to 22)'
    """
    counts = shares.judge_false
    n = min(chats_needed(need.missing_false, share=counts.share), available)
    if not n:
        return ""
    return f"sample {n} chat{'' if n == 1 else 's'} judged False: {expected_false([(n, counts)]).words}"


@dataclass(frozen=True, slots=True)
class MissingLabels:
    """A criterion's missing labels, and the expected share of human False in either kind of chat."""

    false: int
    true: int
    chats: int
    share_suspect: float
    share_other: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of chats: judged False (`suspect`), and all others."""

    suspect: int
    other: int


def smallest_sizes(missing: Sequence[MissingLabels], *, suspect: int, other: int) -> Sizes:
    """Return the smallest sample that is expected to bring every criterion its missing labels.

    At least a fifth of the sample are other chats: weights cannot correct for chats without a chance.

    Parameters
    ----------
    missing : one entry per criterion.
    suspect, other : available chats of either kind, an upper limit.

    Examples
    --------
    >>> smallest_sizes([MissingLabels(18, 0, 18, 0.72, 0.1)], suspect=100, other=500)
    Sizes(suspect=25, other=7)
    >>> smallest_sizes([MissingLabels(18, 9, 40, 0.72, 0.1)], suspect=10, other=500)
    Sizes(suspect=10, other=108)
    """
    rare = max((chats_needed(one.false, share=one.share_suspect) for one in missing), default=0)
    rare = min(rare, suspect)
    rest = max((_others(one, rare) for one in missing), default=0)
    if rest and not rare:
        rare = min(1, suspect)
    return Sizes(rare, min(max(rest, fewest_others(rare)), other))


def fewest_others(suspect: int) -> int:
    """Return the fewest other chats in a sample with this many judged False: a fifth of the sample.

    >>> fewest_others(25), fewest_others(1), fewest_others(0)
    (7, 1, 0)
    """
    return math.ceil(suspect * OTHERS / (1 - OTHERS) - 1e-9)


def sizes_within(chats: int, *, target: int, suspect: int, other: int) -> Sizes:
    """Divide `chats` between the two kinds: `target` judged False, if both kinds keep their least share.

    Parameters
    ----------
    chats : sample size, at most suspect + other.
    target : chats judged False that the sample should have.
    suspect, other : available chats of either kind.

    Examples
    --------
    >>> sizes_within(20, target=30, suspect=100, other=500)
    Sizes(suspect=16, other=4)
    >>> sizes_within(20, target=0, suspect=100, other=500)
    Sizes(suspect=1, other=19)
    """
    both = chats > 1
    most = min(suspect, chats - min(other, math.ceil(chats * OTHERS - 1e-9) if both else 0))
    least = max(chats - other, min(1, suspect) if both else 0)
    rare = max(min(target, most), least)
    return Sizes(rare, chats - rare)


def _others(missing: MissingLabels, rare: int) -> int:
    """Other chats needed for the labels that `rare` suspect chats do not bring."""
    false = missing.false - rare * missing.share_suspect
    true = missing.true - rare * (1 - missing.share_suspect)
    return max(
        0,
        missing.chats - rare,
        math.ceil(false / missing.share_other - 1e-9),
        math.ceil(true / (1 - missing.share_other) - 1e-9),
    )
