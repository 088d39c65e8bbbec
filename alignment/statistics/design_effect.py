"""Means over criteria of shares and of differences, where answers on one chat are correlated."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from alignment.statistics.agreement.formulas import Floats
from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import MINIMUM_CHATS, mover_mean, student_quantile, wilson
from alignment.statistics.paired_tests import tango_bounds, tango_z

Counts = NDArray[np.integer] | NDArray[np.bool_]
# Units whose answers are all alike that are added to the data, as Agresti and Coull add four answers.
PRIOR_UNITS = 4


@dataclass(frozen=True)
class MeanShare:
    """A mean share in [0, 1], or a mean difference of two in [-1, 1].

    Parameters
    ----------
    estimate : with its interval.
    errors : what each unit adds to its error, shape (units,).
    degrees : degrees of freedom of its variance.
    p : of a difference: two-sided, of the test against 0. None without an answer.
    """

    estimate: Estimate
    errors: Floats
    degrees: float = math.inf
    p: float | None = None


@dataclass(frozen=True)
class EffectivePairs:
    """Pairs of answers of two judges, as so many independent ones: the counts may be fractions.

    first, second : pairs of which only the first judge, or only the second, is right. n : all pairs.
    degrees : degrees of freedom of `n`; infinite for counted pairs.
    """

    first: float
    second: float
    n: float
    degrees: float = math.inf


@dataclass(frozen=True)
class MeanError:
    """Standard error of a mean, and the degrees of freedom of its variance."""

    error: float
    degrees: float = math.inf


@dataclass(frozen=True)
class _Effective:
    """Number of independent answers with the same information.

    degrees : degrees of freedom of this number. errors : what each unit adds to the error of the mean.
    """

    n: float
    degrees: float
    errors: Floats


def mean_share(
    right: Counts, n: Counts, *, reason: str, interval: Callable[..., Interval | None] = wilson
) -> MeanShare:
    """Share of right answers, averaged over strata (criteria), with units (chats) as clusters.

    Parameters
    ----------
    right, n : right answers and answers, shape (strata, units). Strata without an answer do not count.
    reason : why the mean is undefined if no stratum has an answer.
    interval : `wilson` or `modified_wilson`.

    Returns
    -------
    MeanShare : with Wilson's interval on the effective number of answers and Student's quantile. Units with
        one answer each, in one stratum, get the plain Wilson interval.

    Notes
    -----
    The variance is the delete-one-unit jackknife's (CR3: Bell & McCaffrey 2002, Surv Methodol 28:169), not
    below that of independent answers. With several strata, one right and one wrong answer are added to each
    for the latter (Agresti & Coull 1998, Am Stat 52:119): few answers that are all right are no certainty;
    to pairs, half a pair of each kind (Agresti & Min 2005, Stat Med 24:729). Few units show
    little of their correlation, so it is mixed with that of four units whose answers are all alike. The
    effective number is mean (1 - mean) / variance (Korn & Graubard 1998, Surv Methodol 24:193). Below 10
    units, or with all or no answers right, it is the number of units (Kish 1965, Survey Sampling, 11.7).
    Degrees of freedom: that number minus 1.

    Examples
    --------
    >>> right, n = np.array([[1, 1, 1, 0], [1, 0, 0, 0]]), np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    >>> mean_share(right, n, reason="").estimate.value
    0.625
    """
    units = n.shape[1]
    right, n = _with_answers(right, n), _with_answers(n, n)
    if not n.size:
        return MeanShare(Estimate(None, reason=reason), np.zeros(units))
    totals, hits = n.sum(axis=1), right.sum(axis=1)
    shares = hits / totals
    mean = float(shares.mean())
    moved = _moved(hits, totals, 1)
    effective = _effective(
        right - shares[:, np.newaxis] * n, n, single=mean * (1 - mean), independent=moved * (1 - moved)
    )
    found = interval(mean * effective.n, effective.n, degrees=effective.degrees)
    return MeanShare(Estimate(mean, found), effective.errors, effective.degrees)


def balanced(true: MeanShare, false: MeanShare) -> MeanShare:
    """Mean of what human True and human False give, two shares or two differences over the same criteria.

    MOVER with their correlation over units, at least 0: a negative one would narrow an interval on thin data.
    Undefined if either is. `p` follows from the interval: it is below 0.05 where the interval excludes 0.

    Notes
    -----
    Zou & Donner (2008), Stat Med 27:1693; p: Altman & Bland (2011), BMJ 343:d2304.

    Examples
    --------
    >>> ones = np.ones((1, 40), dtype=np.int64)
    >>> ahead = mean_difference(ones * (np.arange(40) < 12), 0 * ones, ones, reason="")
    >>> balanced(ahead, mean_difference(0 * ones, 0 * ones, ones, reason="")).estimate.value
    0.15
    """
    scale = float(np.sqrt((true.errors**2).sum() * (false.errors**2).sum()))
    correlation = max(0.0, float((true.errors * false.errors).sum()) / scale) if scale else 0.0
    mean = mover_mean(true.estimate, false.estimate, correlation=correlation)
    degrees = min(true.degrees, false.degrees)
    return MeanShare(mean, (true.errors + false.errors) / 2, degrees, _p_value(mean, degrees))


def _p_value(difference: Estimate, degrees: float) -> float | None:
    """Two-sided p value against 0, from the half of the interval that points to 0."""
    value, interval = difference.value, difference.interval
    if value is None or interval is None:
        return None
    half = value - interval.low if value > 0 else interval.high - value
    if not half:
        return 0.0 if value else 1.0
    return float(2 * stdtr(degrees, -abs(value) / half * student_quantile(0.95, degrees)))


def mean_difference(first: Counts, second: Counts, n: Counts, *, reason: str) -> MeanShare:
    """Share of right answers of one judge minus another's, averaged over strata, with units as clusters.

    Parameters
    ----------
    first, second : answers that only the first judge, or only the second, has right; shape (strata, units).
    n : answers of both, same shape.
    reason : why the mean is undefined if no stratum has an answer.

    Returns
    -------
    MeanShare : Tango's score interval and test (1998, Stat Med 17:891) on effective counts, computed as
        in `mean_share`. The interval has a width even if no answer differs.

    Examples
    --------
    >>> ones = np.ones((1, 40), dtype=np.int64)
    >>> ahead = mean_difference(ones * (np.arange(40) < 12), ones * (np.arange(40) > 37), ones, reason="")
    >>> ahead.estimate.value, round(ahead.p, 3)
    (0.25, 0.008)
    """
    units = n.shape[1]
    first, second, n = (_with_answers(counts, n) for counts in (first, second, n))
    if not n.size:
        return MeanShare(Estimate(None, reason=reason), np.zeros(units))
    pairs, errors = _pairs(first, second, n)
    score = float(tango_z(pairs.first, pairs.second, pairs.n, at=0.0))
    interval = tango_bounds(pairs.first, pairs.second, pairs.n, degrees=pairs.degrees)
    p = float(2 * stdtr(pairs.degrees, -abs(score)))
    totals = n.sum(axis=1)
    value = float((first.sum(axis=1) / totals).mean()) - float((second.sum(axis=1) / totals).mean())
    return MeanShare(Estimate(value, interval), errors, pairs.degrees, p)


def effective_pairs(first: Counts, second: Counts, n: Counts) -> EffectivePairs:
    """Count the pairs of two judges on one criterion, with units (clusters of chats) as in `mean_difference`.

    `first`, `second` : pairs of which only the first judge, or only the second, is right; shape (units,).
    `n` : all pairs, same shape.

    >>> ones = np.ones(20, dtype=np.int64)
    >>> alone, copies = (effective_pairs(0 * ones, k * (np.arange(20) < 5), k * ones) for k in (1, 4))
    >>> round(alone.n, 6), copies.n < 20
    (20.0, True)
    """
    present = n > 0
    if not present.any():
        return EffectivePairs(0, 0, 0)
    pairs, _ = _pairs(*(counts[np.newaxis, present] for counts in (first, second, n)))
    return pairs


def mean_error(values: Floats, clusters: NDArray[np.int64]) -> MeanError | None:
    """Standard error of the mean of values on chats, with clusters of chats as units as in `mean_share`.

    `values`, `clusters` : of each chat, shape (chats,). None with fewer than two clusters.

    >>> alone = mean_error(np.array([1.0, 0.0, 1.0]), np.arange(3))
    >>> copies = mean_error(np.array([1.0, 0.0, 1.0] * 2), np.array([0, 1, 2] * 2))
    >>> round(alone.error, 3), round(copies.error, 3), copies.degrees
    (0.333, 0.333, 2.0)
    """
    _, numbers, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    present, chats = len(sizes), len(values)
    if present < 2:
        return None
    units = chats**2 / float((sizes**2).sum())
    single = float(values.var()) * units / (units - 1)
    if present == chats:
        return MeanError(math.sqrt(single / chats))
    variance = alike = single / units
    if present >= MINIMUM_CHATS:
        change = np.bincount(numbers, values - values.mean()) / (chats - sizes)
        variance = _with_prior(_jackknife(change, present), floor=single / chats, alike=alike, units=units)
    return MeanError(math.sqrt(variance), max(1.0, units - 1))


def _pairs(first: Counts, second: Counts, n: Counts) -> tuple[EffectivePairs, Floats]:
    """Effective pairs in the mean over strata, and what each unit adds to its error; (strata, units)."""
    totals = n.sum(axis=1)
    wins, losses = first.sum(axis=1), second.sum(axis=1)
    by_stratum = (wins - losses) / totals
    won, lost = float((wins / totals).mean()), float((losses / totals).mean())
    value = won - lost
    moved_won, moved_lost = _moved(wins, totals, 0.5), _moved(losses, totals, 0.5)
    effective = _effective(
        first.astype(np.int64) - second - by_stratum[:, np.newaxis] * n,
        n,
        single=won + lost - value**2,
        independent=moved_won + moved_lost - (moved_won - moved_lost) ** 2,
    )
    pairs = EffectivePairs(won * effective.n, lost * effective.n, effective.n, effective.degrees)
    return pairs, effective.errors


def by_cluster(counts: Counts, clusters: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Add up the counts of the chats of each cluster: shape (…, chats) becomes (…, clusters).

    `clusters` : number of each chat's cluster, 0, 1, …; None leaves each chat alone.

    >>> by_cluster(np.array([[1, 0, 1], [1, 1, 1]]), np.array([0, 1, 0])).tolist()
    [[2, 0], [2, 1]]
    """
    whole: NDArray[np.int64] = counts.astype(np.int64)
    if clusters is None or not clusters.size:
        return whole
    order = np.argsort(clusters, kind="stable")
    _, starts = np.unique(clusters[order], return_index=True)
    return np.add.reduceat(whole[..., order], starts, axis=-1)


def _with_answers(counts: Counts, n: Counts) -> Counts:
    """The strata that have an answer."""
    return counts[n.any(axis=1)]


def _moved(counts: Counts, totals: Counts, added: float) -> Floats:
    """Shares by stratum with 2 more answers, `added` of them counted; as observed in a single stratum."""
    if len(totals) == 1:
        return counts / totals
    return (counts + added) / (totals + 2)


def _effective(errors: Floats, n: Counts, *, single: float, independent: Floats) -> _Effective:
    """Effective number of answers in a mean over strata.

    errors : observed minus expected, shape (strata, units). single : variance of one answer at the mean.
    independent : variance of one answer by stratum.
    """
    strata, totals = len(n), n.sum(axis=1)
    share = (n / totals[:, np.newaxis]).sum(axis=0) / strata
    units = float(1 / (share**2).sum())
    degrees = max(1.0, units - 1) if (n.sum(axis=0) > 1).any() else math.inf
    left = np.maximum(totals[:, np.newaxis] - n, 1)  # a stratum of one unit keeps its share without it
    change = (errors / left).sum(axis=0) / strata
    present = int(np.count_nonzero(share))
    if not single or present < MINIMUM_CHATS:
        return _Effective(units, degrees, change)
    floor = float((independent / totals).sum()) / strata**2
    if math.isinf(degrees):
        return _Effective(single / floor, degrees, change)
    variance = _with_prior(_jackknife(change, present), floor=floor, alike=single / units, units=units)
    return _Effective(single / variance, degrees, change)


def _jackknife(change: Floats, present: int) -> float:
    """Variance of a mean from its change without each unit; `present` counts the units with an answer."""
    return (present - 1) / present * float((change**2).sum() - change.sum() ** 2 / present)


def _with_prior(jackknife: float, *, floor: float, alike: float, units: float) -> float:
    """Mix the jackknife's variance with that of units whose answers are all alike, both at least `floor`."""
    prior = PRIOR_UNITS / (PRIOR_UNITS + units)
    return (1 - prior) * max(floor, jackknife) + prior * max(floor, alike)
