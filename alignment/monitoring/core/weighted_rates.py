"""Rates over all chats from stratified samples of judged chats, computed from sums by stratum."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import wilson

Floats = NDArray[np.float64]
# Chats with the spread of the whole sample that are added to each stratum's own for the interval. A large
# topic with few judged chats often has no failing one among them, and would add nothing to the width.
PRIOR_CHATS = 10


class Reason(StrEnum):
    """Why a rate, or its correction, is not available."""

    NO_CHATS = "no_chats"
    UNSAMPLED = "unsampled"
    NO_ANSWERS = "no_answers"
    NO_LABELS = "no_labels"
    ONE_CLASS = "one_class"
    TOO_FEW_LABELS = "too_few_labels"
    UNLABELLED_GROUP = "unlabelled_group"
    NEEDS_AUDIT = "needs_audit"
    SEVERAL_JUDGES = "several_judges"
    NO_BETTER_THAN_CHANCE = "no_better_than_chance"
    OUTSIDE_RANGE = "outside_range"
    TOO_WIDE = "too_wide"


REASONS = {
    Reason.NO_CHATS: "no chat in this period",
    Reason.UNSAMPLED: "some topics or days have chats but none of them was judged",
    Reason.NO_ANSWERS: "no judged chat to which this applies",
    Reason.NO_LABELS: "no labelled chats",
    Reason.ONE_CLASS: "needs labels that pass and labels that fail",
    Reason.TOO_FEW_LABELS: "too few labels",
    Reason.UNLABELLED_GROUP: "the audit labels of some nights are not in yet",
    Reason.NEEDS_AUDIT: "only a random audit by raters corrects this: give raters a share in the sample plan",
    Reason.SEVERAL_JUDGES: "several judges in these weeks: choose fewer weeks",
    Reason.NO_BETTER_THAN_CHANCE: "the judge is no better than chance (TPR + TNR <= 1)",
    Reason.OUTSIDE_RANGE: "the judge's rate is not possible with its TPR and TNR on the curated labels",
    Reason.TOO_WIDE: "not usable: the interval is wider than 0.5",
}


@dataclass(frozen=True, slots=True)
class StratumSums:
    """Sums over the sampled chats of a stratum, e.g. of one night's topic.

    A chat has a answers, y of them passing. For a criterion a and y are 0 or 1; for a dimension they count
    its applicable criteria; for the session score a is 1 and y the score. Chats of another variant, chats to
    which nothing applies and chats without a verdict have a = y = 0. They count in `sampled` and `size`.

    Parameters
    ----------
    size : N, chats of the stratum in the frame.
    sampled : n, chats of the sample that were judged, with or without a verdict; at most N.
    answers, passes : sums of a and y.
    answers_squared, passes_squared, products : sums of a^2, y^2 and a y.
    """

    size: int
    sampled: int
    answers: float
    passes: float
    answers_squared: float
    passes_squared: float
    products: float

    @classmethod
    def of_counts(cls, *, size: int, sampled: int, passed: int, failed: int) -> "StratumSums":
        """Sums of a criterion, from its counts; the other `sampled` chats have no True or False.

        >>> StratumSums.of_counts(size=50, sampled=9, passed=6, failed=1).answers
        7
        """
        answers = passed + failed
        return cls(size, sampled, answers, passed, answers, passed, passed)

    @classmethod
    def of_chats(cls, *, size: int, answers: ArrayLike, passes: ArrayLike) -> "StratumSums":
        """Sums from a and y of each sampled chat, both of shape (sampled,).

        >>> StratumSums.of_chats(size=50, answers=[3, 0, 2], passes=[3, 0, 1]).products
        11.0
        """
        a, y = np.asarray(answers, dtype=np.float64), np.asarray(passes, dtype=np.float64)
        sums = (float(one.sum()) for one in (a, y, a * a, y * y, a * y))
        return cls(size, a.size, *sums)


@dataclass(frozen=True, slots=True)
class WeightedRate:
    """A rate over all chats of a frame.

    Parameters
    ----------
    estimate : in [0, 1], with its interval; its `reason` is the text of `reason`.
    reason : why there is no estimate; None if there is one.
    error : standard error from the sampling design.
    effective : number of independent answers with the same information; infinite if every chat was judged.
    answers : answers of the sampled chats.
    covered : share of the frame's chats in strata with a sampled chat.
    """

    estimate: Estimate
    reason: Reason | None = None
    error: float | None = None
    effective: float = 0.0
    answers: float = 0.0
    covered: float = 0.0

    @classmethod
    def missing(cls, reason: Reason, *, covered: float = 0.0) -> "WeightedRate":
        """Return no estimate, for a reason."""
        return cls(Estimate(None, reason=REASONS[reason]), reason, covered=covered)


def weighted_rate(strata: Sequence[StratumSums], *, confidence: float = 0.95) -> WeightedRate:
    """Estimate the share of passing answers of all chats, from a stratified sample.

    R = sum w y / sum w a over the sampled chats, w = N / n (Hajek). With z = y - R a its variance is
    sum N^2 (1 - n/N) s_z^2 / n over strata, divided by (sum w a)^2. If all chats have one answer, R is the
    Horvitz-Thompson mean.

    Parameters
    ----------
    strata : of all nights and topics of the frame; those without chats do not count.
    confidence : two-sided.

    Returns
    -------
    WeightedRate : Wilson's interval on R (1 - R) / variance answers, with Student's quantile; with all or
        none passing on the answers' effective number (Kish 1965, Survey Sampling, 11.7). For the interval
        s_z^2 is mixed with that of the whole sample, as if 10 more chats had shown it. No estimate, with a
        reason, if a stratum with chats has none sampled: it may differ from the others.

    Notes
    -----
    Horvitz & Thompson (1952), JASA 47:663; Hajek (1971); ratios and domains: Särndal, Swensson & Wretman
    (1992), sections 5.6-5.8 and 10.3; Wilson on an effective number: Korn & Graubard (1998), Surv Methodol
    24:193. A stratum's single sampled chat varies around the overall rate, which with many strata overstates
    its variance (Lumley 2004, J Stat Softw 9(8), `lonely.psu="adjust"`).

    Examples
    --------
    >>> night = [StratumSums.of_counts(size=9000, sampled=60, passed=57, failed=3),
    ...     StratumSums.of_counts(size=1000, sampled=50, passed=30, failed=20)]
    >>> found = weighted_rate(night)
    >>> round(found.estimate.value, 3), round(found.error, 4)
    (0.915, 0.0263)
    """
    return weighted_rates([strata], confidence=confidence)[0]


def weighted_rates(
    frames: Sequence[Sequence[StratumSums]], *, confidence: float = 0.95
) -> list[WeightedRate]:
    """Estimate many rates at once, e.g. one a day and criterion; see `weighted_rate`.

    >>> weighted_rates([[StratumSums.of_counts(size=4, sampled=4, passed=3, failed=1)], []])[1].reason.value
    'no_chats'
    """
    if not frames:
        return []
    totals = _Totals.of(_table(frames))
    rates = []
    for number, estimates in enumerate(zip(*totals.columns(), strict=True)):
        reason = totals.reason(number)
        if reason is None:
            rates.append(_weighted_rate(*estimates, confidence=confidence))
        else:
            rates.append(WeightedRate.missing(reason, covered=float(totals.covered[number])))
    return rates


def _weighted_rate(
    rate: float,
    variance: float,
    cautious: float,
    kish: float,
    degrees: float,
    answers: float,
    *,
    confidence: float,
) -> WeightedRate:
    effective = effective_answers(rate, cautious, otherwise=kish)
    interval = share_interval(rate, effective, degrees=degrees, confidence=confidence)
    return WeightedRate(
        Estimate(rate, interval),
        error=math.sqrt(variance),
        effective=effective,
        answers=answers,
        covered=1.0,
    )


def effective_answers(rate: float, variance: float, *, otherwise: float) -> float:
    """Number of independent answers with this variance; `otherwise` if the variance says nothing.

    >>> round(effective_answers(0.5, 0.0025, otherwise=80.0), 6), effective_answers(1.0, 0.0, otherwise=80.0)
    (100.0, 80.0)
    """
    informative = 0 < rate < 1 and variance > 0
    return rate * (1 - rate) / variance if informative else otherwise


def share_interval(rate: float, effective: float, *, degrees: float, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a share on an effective number of answers above 0; a point if it is infinite.

    `rate` in [0, 1]; `degrees` of freedom of the number.

    >>> share_interval(0.5, math.inf, degrees=9)
    Interval(low=0.5, high=0.5)
    """
    if math.isinf(effective):
        return Interval(rate, rate)
    interval = wilson(rate * effective, effective, confidence=confidence, degrees=degrees)
    assert interval is not None  # noqa: S101  the number is above 0
    return interval.holding(rate)


_sums = attrgetter("size", "sampled", "answers", "passes", "answers_squared", "passes_squared", "products")


def _table(frames: Sequence[Sequence[StratumSums]]) -> Floats:
    """The sums of `StratumSums`, shape (7, frames, strata), with empty strata at the end of short frames."""
    table = np.zeros((len(frames), max(1, *map(len, frames)), 7))
    for number, strata in enumerate(frames):
        if strata:
            table[number, : len(strata)] = [_sums(stratum) for stratum in strata]
    return np.moveaxis(table, -1, 0)


@dataclass(frozen=True)
class _Totals:
    """What `weighted_rate` is computed from, shape (frames,).

    Parameters
    ----------
    size : chats. covered : share of them in strata with a sampled chat. answers : of the sampled chats.
    rate : 0 without answers. variance : of the rate, linearised; unbiased for a Horvitz-Thompson mean.
    cautious : the interval's variance, with the whole sample's spread added. degrees : of freedom of that
        (Satterthwaite).
    kish : effective number of answers if answers of different chats are independent.
    """

    size: Floats
    covered: Floats
    answers: Floats
    rate: Floats
    variance: Floats
    cautious: Floats
    degrees: Floats
    kish: Floats

    @classmethod
    def of(cls, table: Floats) -> "_Totals":
        size, n, a, y, aa, yy, ay = table
        weights = size / np.maximum(n, 1)
        total = _positive((weights * a).sum(axis=-1))
        rate = np.minimum(1.0, (weights * y).sum(axis=-1) / total)
        r = rate[:, np.newaxis]
        squares = np.maximum(0.0, yy - 2 * r * ay + r**2 * aa)  # sums of z^2
        own = np.maximum(0.0, squares - (y - r * a) ** 2 / np.maximum(n, 1)) / np.maximum(n - 1, 1)
        overall = (weights * squares).sum(axis=-1, keepdims=True) / _positive(
            size.sum(axis=-1, keepdims=True)
        )
        known = np.maximum(0.0, np.minimum(a, n) - 1)  # chats that show the spread within a stratum
        left = weights**2 * (1 - n / _positive(size))
        added = left * n * (known * own + PRIOR_CHATS * overall) / (known + PRIOR_CHATS)
        cautious, by_known = added.sum(axis=-1), (added**2 / (known + PRIOR_CHATS)).sum(axis=-1)
        alone = (left * aa).sum(axis=-1)
        return cls(
            size=size.sum(axis=-1),
            covered=(size * (n > 0)).sum(axis=-1) / _positive(size.sum(axis=-1)),
            answers=a.sum(axis=-1),
            rate=rate,
            variance=(left * n * np.where(n == 1, squares, own)).sum(axis=-1) / total**2,
            cautious=cautious / total**2,
            degrees=np.where(by_known > 0, np.maximum(1.0, cautious**2 / _positive(by_known)), math.inf),
            kish=np.where(alone > 0, total**2 / _positive(alone), math.inf),
        )

    def columns(self) -> tuple[list[float], ...]:
        """The parameters of `_weighted_rate`."""
        arrays = (self.rate, self.variance, self.cautious, self.kish, self.degrees, self.answers)
        return tuple(array.tolist() for array in arrays)

    def reason(self, number: int) -> Reason | None:
        """Why a frame has no rate."""
        if not self.size[number]:
            return Reason.NO_CHATS
        if self.covered[number] < 1:
            return Reason.UNSAMPLED
        return None if self.answers[number] else Reason.NO_ANSWERS


def _positive(values: Floats) -> Floats:
    """The values, with 1 for 0: a divisor of what is 0 then."""
    return np.where(values > 0, values, 1.0)
