"""Intervals: Wilson, also modified, Clopper-Pearson, MOVER, and a bootstrap that resamples whole chats."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaincinv, ndtri, stdtrit

from alignment.statistics.estimates import Estimate, Interval

RESAMPLES = 2000
MINIMUM_CHATS = 10
COUNTS = 4_000_000  # counts of patterns in memory at once

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def normal_quantile(confidence: float) -> float:
    """Two-sided quantile of the standard normal distribution; `confidence` in (0, 1).

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    return float(ndtri((1 + confidence) / 2))


def student_quantile(confidence: float, degrees: float) -> float:
    """Two-sided quantile of Student's t; with infinite degrees of freedom the normal one.

    >>> round(student_quantile(0.95, 29), 3), round(student_quantile(0.95, math.inf), 3)
    (2.045, 1.96)
    """
    return (
        normal_quantile(confidence) if math.isinf(degrees) else float(stdtrit(degrees, (1 + confidence) / 2))
    )


def _check(successes: float, n: float) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"needs 0 <= successes <= n, not {successes} of {n}")


def wilson(
    successes: float, n: float, *, confidence: float = 0.95, degrees: float = math.inf
) -> Interval | None:
    """Wilson score interval of a share.

    (p + z^2/2n -+ z sqrt(p q / n + z^2/4n^2)) / (1 + z^2/n), within [0, 1].

    Parameters
    ----------
    successes, n : counts, 0 <= successes <= n; fractions where n is an effective number of answers.
    confidence : two-sided.
    degrees : degrees of freedom of an effective n that was estimated: z is then Student's quantile.

    Returns
    -------
    Interval or None : None when n = 0. Exactly 0 below when successes = 0, exactly 1 above when successes =
        n.

    Raises
    ------
    ValueError : successes outside 0..n.

    Notes
    -----
    Wilson (1927), JASA 22:209; method 3 of Newcombe (1998), Stat Med 17:857.

    Examples
    --------
    >>> interval = wilson(15, 148)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0624, 0.1605)
    """
    _check(successes, n)
    if n == 0:
        return None
    z = student_quantile(confidence, degrees)
    share = successes / n
    centre = share + z * z / (2 * n)
    margin = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else max(0.0, (centre - margin) / scale)
    high = 1.0 if successes == n else min(1.0, (centre + margin) / scale)
    return Interval(low, high)


def modified_wilson(
    successes: float, n: float, *, confidence: float = 0.95, degrees: float = math.inf
) -> Interval | None:
    """Wilson interval with a Poisson bound near 0 and 1, for shares of few answers that are almost 0 or 1.

    With 1 to 3 successes (2 if n <= 50) the lower bound is q(x) / n, where q(x) is half the `1 - confidence`
    quantile of chi-squared with 2 x degrees of freedom. With as few failures the upper bound is 1 - q / n.
    Else both are Wilson's, which covers only .86 if n (1 - p) is about 0.15.

    Parameters
    ----------
    successes, n : counts, 0 <= successes <= n; fractions where n is an effective number of answers.
    confidence : two-sided. degrees : of freedom of `n`, for Wilson's quantile.

    Returns
    -------
    Interval or None : None when n = 0; never narrower than Wilson's.

    Raises
    ------
    ValueError : successes outside 0..n.

    Notes
    -----
    Brown, Cai & DasGupta (2001), Stat Sci 16:101, section 4.1.1.

    Examples
    --------
    >>> round(wilson(25, 26).high, 4), round(modified_wilson(25, 26).high, 4)
    (0.9932, 0.998)
    """
    plain = wilson(successes, n, confidence=confidence, degrees=degrees)
    if plain is None:
        return None
    low, high, failures = plain.low, plain.high, n - successes
    few = 2 if n <= 50 else 3
    if 0 < successes <= few:
        low = min(low, float(gammaincinv(successes, 1 - confidence)) / n)
    if 0 < failures <= few:
        high = max(high, 1 - float(gammaincinv(failures, 1 - confidence)) / n)
    return Interval(low, high)


def clopper_pearson(successes: int, n: int, *, confidence: float = 0.95) -> Interval | None:
    """Exact (Clopper-Pearson) interval of a share, from beta quantiles.

    Parameters
    ----------
    successes, n : counts, 0 <= successes <= n.
    confidence : two-sided, also where a bound is 0 or 1.

    Returns
    -------
    Interval or None : None when n = 0.

    Raises
    ------
    ValueError : successes outside 0..n.

    Notes
    -----
    Clopper & Pearson (1934), Biometrika 26:404; method 5 of Newcombe (1998).

    Examples
    --------
    >>> interval = clopper_pearson(10, 10)
    >>> round(interval.low, 4), interval.high
    (0.6915, 1.0)
    """
    _check(successes, n)
    if n == 0:
        return None
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(betaincinv(successes + 1, n - successes, 1 - tail))
    return Interval(low, high)


def proportion(successes: int, n: int, *, reason: str) -> Estimate:
    """A share with its 95% Wilson interval; undefined with `reason` if n = 0.

    Raises ValueError for successes outside 0..n. Wilson (1927), JASA 22:209.

    >>> proportion(0, 0, reason="no chat").value is None
    True
    """
    return Estimate(successes / n, wilson(successes, n)) if n else Estimate(None, reason=reason)


def mover_mean(
    first: Estimate, second: Estimate, *, weight: float = 0.5, correlation: float = 0.0
) -> Estimate:
    """Weighted mean of two shares, or of two differences, with its interval computed from theirs (MOVER).

    With m the mean, l and u the bounds of each share p, r their correlation, and a = w (p1 - l1),
    b = (1 - w) (p2 - l2): low = m - sqrt(a^2 + 2 r a b + b^2), high likewise; within the mean of the bounds.

    Parameters
    ----------
    first, second : shares, e.g. TPR and TNR, with Wilson intervals.
    weight : w, of the first, in [0, 1].
    correlation : r of the two shares; 0 if they come from separate chats.

    Returns
    -------
    Estimate : undefined, with its reason, if either share is.

    Notes
    -----
    Zou & Donner (2008), Stat Med 27:1693. With TPR and TNR it covers .94-.97 where a percentile
    bootstrap of balanced accuracy covers .62-.94.

    Examples
    --------
    >>> mean = mover_mean(proportion(9, 10, reason=""), proportion(7, 10, reason=""))
    >>> round(mean.value, 3), round(mean.interval.low, 3), round(mean.interval.high, 3)
    (0.8, 0.585, 0.905)
    """
    for share in (first, second):
        if share.value is None or share.interval is None:
            return Estimate(None, reason=share.reason)
    assert first.value is not None and second.value is not None  # noqa: S101  checked above
    assert first.interval and second.interval  # noqa: S101
    mean = weight * first.value + (1 - weight) * second.value
    below = first.value - first.interval.low, second.value - second.interval.low
    above = first.interval.high - first.value, second.interval.high - second.value
    sides = ((weight * a, (1 - weight) * b) for a, b in (below, above))
    down, up = (math.sqrt(a * a + 2 * correlation * a * b + b * b) for a, b in sides)
    least = weight * first.interval.low + (1 - weight) * second.interval.low
    most = weight * first.interval.high + (1 - weight) * second.interval.high
    return Estimate(mean, Interval(max(least, mean - down), min(most, mean + up)))


@dataclass(frozen=True)
class Patterns:
    """Distinct rows, shape (patterns, width), and the number of chats with each, shape (patterns,)."""

    rows: NDArray[np.int64]
    chats: NDArray[np.int64]


def patterns(rows: NDArray[np.integer]) -> Patterns:
    """Distinct rows of small counts, most frequent first; rows with only zeros are excluded.

    There are far fewer patterns than chats: with k criteria, at most (k + 4 over 4) patterns of
    (tp, fn, fp, tn) for any number of chats.

    Parameters
    ----------
    rows : counts, not negative, shape (chats, width).

    Returns
    -------
    Patterns

    Raises
    ------
    ValueError : a count is negative.

    Examples
    --------
    >>> distinct = patterns(np.array([[1, 0], [0, 1], [1, 0], [0, 0]]))
    >>> distinct.rows.tolist(), distinct.chats.tolist()
    ([[1, 0], [0, 1]], [2, 1])
    """
    matrix = np.asarray(rows, dtype=np.int64)
    if matrix.size and matrix.min() < 0:
        raise ValueError("needs counts that are not negative")
    base, width = int(matrix.max(initial=0)) + 1, matrix.shape[1]
    if base**width < 2**63:
        return packed_patterns(matrix @ digits(base, width), base=base, width=width)
    distinct, chats = np.unique(matrix, axis=0, return_counts=True)  # too large to pack
    return _most_frequent_first(distinct, chats)


def digits(base: int, width: int) -> NDArray[np.int64]:
    """Place values of a number with `width` digits in this base, smallest first; shape (width,).

    >>> digits(10, 3).tolist()
    [1, 10, 100]
    """
    return base ** np.arange(width, dtype=np.int64)


def packed_patterns(packed: NDArray[np.int64], *, base: int, width: int) -> Patterns:
    """Distinct rows of rows that are packed into one number each, row @ digits(base, width); see `patterns`.

    Parameters
    ----------
    packed : shape (chats,), not negative.
    base : larger than any count in a row.
    width : number of counts in a row.

    Returns
    -------
    Patterns

    Examples
    --------
    >>> packed_patterns(np.array([1, 10, 1, 0]), base=10, width=2).rows.tolist()
    [[1, 0], [0, 1]]
    """
    codes, chats = np.unique(packed, return_counts=True)
    return _most_frequent_first(codes[:, np.newaxis] // digits(base, width) % base, chats)


def _most_frequent_first(rows: NDArray[np.int64], chats: NDArray[np.int64]) -> Patterns:
    """Sort by frequency: multinomial sampling stops once all chats are placed."""
    rows, chats = rows[rows.any(axis=1)], chats[rows.any(axis=1)]
    order = np.argsort(-chats, kind="stable")
    return Patterns(rows[order], chats[order])


@dataclass(frozen=True)
class Pseudo:
    """Pseudo-chats to resample as well: contributions (patterns, width), weights (patterns,) above 0."""

    rows: NDArray[np.float64]
    weights: NDArray[np.float64]


def half_of_each(size: float = 1.0) -> Pseudo:
    """Half a pseudo-chat for each cell tp, fn, fp, tn: Jeffreys' prior of a 2x2 table.

    Parameters
    ----------
    size : pairs in a pseudo-chat. Use the mean number per chat, so that five copies of a criterion carry no
        more information than one.

    Returns
    -------
    Pseudo : rows (4, 4), weights (4,).

    Notes
    -----
    Jeffreys (1946), Proc R Soc A 186:453; docs/adr/0012.

    Examples
    --------
    >>> half_of_each(3).rows[0].tolist(), half_of_each().weights.tolist()
    ([3.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5])
    """
    return Pseudo(size * np.eye(4), np.full(4, 0.5))


@dataclass(frozen=True)
class Resamples:
    """Summed contributions by replicate, shape (resamples, width); None, with a reason, for too few chats."""

    sums: NDArray[np.float64] | None
    reason: str = ""


def resample_chats(
    contributions: NDArray[Any],
    chats: NDArray[np.int64],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    pseudo: Pseudo | None = None,
) -> Resamples:
    """Resample whole chats with replacement and sum up their contributions.

    A replicate has as many chats as the data. Chats with the same pattern are interchangeable, so the counts
    of patterns are multinomial: the same distribution as sampling chats one by one, at a cost that does not
    grow with their number.

    Parameters
    ----------
    contributions : shape (patterns, width); any additive quantity of a chat with that pattern.
    chats : shape (patterns,); number of chats with each pattern.
    seed : stored with the result; the same seed gives the same replicates.
    resamples : number of replicates.
    pseudo : pseudo-chats to sample from as well, so that an event missing in the data is rare instead of
        impossible. They do not count towards the minimum of 10 chats.

    Returns
    -------
    Resamples : without sums, with a reason, below 10 chats.

    Notes
    -----
    Efron & Tibshirani (1993), chapter 8; cluster bootstrap: Davison & Hinkley (1997), section 3.8.

    Examples
    --------
    >>> resample_chats(np.array([[1], [0]]), np.array([12, 8]), seed=1, resamples=3).sums.shape
    (3, 1)
    >>> resample_chats(np.array([[1]]), np.array([9]), seed=1).reason
    'too few chats to resample: 9 of 10'
    """
    total = int(chats.sum())
    if total < MINIMUM_CHATS:
        return Resamples(None, f"too few chats to resample: {total} of {MINIMUM_CHATS}")
    rows, weights = np.asarray(contributions, dtype=np.float64), chats.astype(np.float64)
    if pseudo:
        rows, weights = np.vstack([rows, pseudo.rows]), np.concatenate([weights, pseudo.weights])
    draw, shares, block = np.random.default_rng(seed), weights / weights.sum(), max(1, COUNTS // len(rows))
    sizes = (min(block, resamples - start) for start in range(0, resamples, block))
    counted = (draw.multinomial(total, shares, size=size).astype(np.float64) @ rows for size in sizes)
    return Resamples(np.concatenate(list(counted)))


def bootstrap_estimate(
    value: float | None, statistic: Statistic, resampled: Resamples, *, reason: str, confidence: float = 0.95
) -> Estimate:
    """A statistic with its percentile bootstrap interval.

    Parameters
    ----------
    value : the statistic of the data; None if undefined, for `reason`.
    statistic : function from sums (resamples, width) to values (resamples,), NaN where undefined.
    resampled : result of `resample_chats`.
    reason : why `value` is None.
    confidence : two-sided.

    Returns
    -------
    Estimate : replicates with an undefined statistic are dropped and counted in `dropped`. Without an
        interval, with a reason, for too few chats or if no replicate is left. The interval is stretched to
        include the value if pseudo-chats have moved it. Flagged if all replicates are equal, because such an
        interval has no width.

    Notes
    -----
    Efron & Tibshirani (1993), chapter 13.

    Examples
    --------
    >>> resampled = resample_chats(np.array([[1], [0]]), np.array([30, 10]), seed=1)
    >>> estimate = bootstrap_estimate(0.75, lambda sums: sums[:, 0] / 40, resampled, reason="")
    >>> estimate.interval.low < 0.75 < estimate.interval.high
    True
    """
    if value is None:
        return Estimate(None, reason=reason)
    if resampled.sums is None:
        return Estimate(value, reason=resampled.reason)
    replicates = statistic(resampled.sums)
    defined = replicates[~np.isnan(replicates)]
    dropped = int(replicates.size - defined.size)
    if not defined.size:
        return Estimate(value, reason="undefined in every resample", dropped=dropped)
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    flag = "all resamples are equal: the interval has no width" if defined.min() == defined.max() else ""
    return Estimate(value, Interval(float(low), float(high)).holding(value), flag=flag, dropped=dropped)
