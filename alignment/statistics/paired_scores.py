"""Two sources that score the same chats between 0 and 1: means, their difference, and correlations."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import RESAMPLES, Pseudo, Resamples, bootstrap_estimate, resample_chats

NO_PAIR = "no chat with both scores"
CONSTANT = "one side gives every chat the same score"

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True)
class PairedScores:
    """Agreement of two scores of the same chats.

    Parameters
    ----------
    first, second : mean scores.
    difference : mean of second minus first.
    correlation : Pearson's r, with its interval.
    rank_correlation : Spearman's rho; None if undefined.
    """

    first: Estimate
    second: Estimate
    difference: Estimate
    correlation: Estimate
    rank_correlation: float | None


def paired_scores(
    first: Floats,
    second: Floats,
    *,
    clusters: NDArray[np.int64] | None = None,
    seed: int,
    resamples: int = RESAMPLES,
) -> PairedScores:
    """Compare two scores of the same chats.

    Parameters
    ----------
    first, second : scores in [0, 1], shape (chats,).
    clusters : number of each chat's cluster; None leaves each chat alone.
    seed, resamples : settings of the bootstrap, which resamples clusters.

    Returns
    -------
    PairedScores : intervals are percentiles of the bootstrap, with half a pseudo-chat for each pair of 0 and
        1 (docs/adr/0012). None below 10 clusters.

    Raises
    ------
    ValueError : a score outside [0, 1], or sides of different length.

    Notes
    -----
    Efron & Tibshirani (1993), chapters 8 and 13. Not Fisher's z for the correlation: scores with many 0 and
    1 are far from normal, and its interval covers .12 to .96 of the simulated sets.

    Examples
    --------
    >>> scores = paired_scores(np.array([0.5, 1.0]), np.array([1.0, 1.0]), seed=1)
    >>> scores.difference.value, scores.correlation.value
    (0.25, None)
    """
    _check(first, second)
    resampled = _resampled(first, second, clusters, seed=seed, resamples=resamples)

    def estimate(value: float | None, statistic: Statistic) -> Estimate:
        reason = CONSTANT if len(first) else NO_PAIR
        return bootstrap_estimate(value, statistic, resampled, reason=reason)

    return PairedScores(
        first=estimate(_mean(first), lambda sums: sums[:, 1] / sums[:, 0]),
        second=estimate(_mean(second), lambda sums: sums[:, 2] / sums[:, 0]),
        difference=estimate(_mean(second - first), lambda sums: (sums[:, 2] - sums[:, 1]) / sums[:, 0]),
        correlation=estimate(pearson(first, second), _correlation),
        rank_correlation=spearman(first, second),
    )


def mean_score(
    scores: Floats,
    *,
    clusters: NDArray[np.int64] | None = None,
    seed: int,
    reason: str,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Mean of scores in [0, 1], shape (chats,), with the interval of `paired_scores`.

    `reason` : why it is undefined without a score. Raises ValueError for a score outside [0, 1].

    >>> mean_score(np.array([0.5, 1.0]), seed=1, reason="").value
    0.75
    """
    if not scores.size:
        return Estimate(None, reason=reason)
    return paired_scores(scores, scores, clusters=clusters, seed=seed, resamples=resamples).first


def pearson(first: Floats, second: Floats) -> float | None:
    """Pearson's correlation; None if a side is constant or there are fewer than two values.

    Pearson (1895), Proc R Soc Lond 58:240. Shapes (values,).

    >>> round(pearson(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])), 3)
    0.5
    """
    if first.size < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    moved, other = first - first.mean(), second - second.mean()
    value = float(moved @ other / np.sqrt((moved @ moved) * (other @ other)))
    return min(1.0, max(-1.0, value))


def spearman(first: Floats, second: Floats) -> float | None:
    """Spearman's rank correlation, equal values at their mean rank; None where `pearson` is.

    Spearman (1904), Am J Psychol 15:72. NB: importing `scipy.stats` for this takes seconds.

    >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 9.0, 5.0])), 3)
    0.5
    """
    return pearson(_ranks(first), _ranks(second))


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values get their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks


def _check(first: Floats, second: Floats) -> None:
    if first.shape != second.shape:
        raise ValueError(f"{first.size} scores against {second.size}")
    both = np.concatenate([first, second])
    if not np.all((both >= 0) & (both <= 1)):
        raise ValueError("needs scores between 0 and 1")


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def _sums(first: Floats, second: Floats) -> Floats:
    """Contributions of each chat: 1, both scores, their squares, their product; shape (chats, 6)."""
    return np.stack([np.ones_like(first), first, second, first**2, second**2, first * second], axis=1)


# Both scores 0 or 1: the corners of the square that holds every pair.
_CORNERS = _sums(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0]))


def _resampled(
    first: Floats, second: Floats, clusters: NDArray[np.int64] | None, *, seed: int, resamples: int
) -> Resamples:
    if clusters is None:
        # As complex numbers pairs are sorted much faster than as rows.
        pairs, chats = np.unique(first + 1j * second, return_counts=True)
        rows, size = _sums(pairs.real, pairs.imag), 1.0
    else:
        _, numbers = np.unique(clusters, return_inverse=True)
        rows = np.stack([np.bincount(numbers, column) for column in _sums(first, second).T], axis=1)
        chats = np.ones(len(rows), dtype=np.int64)
        size = float(rows[:, 0].mean()) if len(rows) else 1.0  # a pseudo-chat is as large as a cluster
    pseudo = Pseudo(size * _CORNERS, np.full(len(_CORNERS), 0.5))
    return resample_chats(rows, chats, seed=seed, resamples=resamples, pseudo=pseudo)


def _correlation(sums: Floats) -> Floats:
    """Pearson's r of each replicate, NaN for a constant side."""
    n, first, second, first_squares, second_squares, products = sums.T
    spread = (n * first_squares - first**2) * (n * second_squares - second**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        # NB: a constant side leaves a rest of rounding, not 0.
        r = np.where(spread > 1e-9 * n**4, (n * products - first * second) / np.sqrt(spread), np.nan)
    clipped: Floats = np.clip(r, -1, 1)
    return clipped
