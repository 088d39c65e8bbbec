"""Frozen baselines: the rates without drift, and how far a rate may move before it counts as drift."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, stdtrit

from alignment.alerts.core.detectors import Floats, Sample

TOLERANCE = 0.01
# A rate moves from night to night with the mix of chats: so many standard deviations of that are no drift.
SPREADS = 2.0
FEWEST_NIGHTS = 7


@dataclass(frozen=True)
class Band:
    """Rates of one kind without drift: the estimate, and the lowest and highest that count as none.

    Each has shape (...), one entry a criterion. `low` and `high` lie strictly inside (0, 1) where the rate is
    not at 0 or 1, and are clipped to [0, 1].
    """

    rate: Floats
    low: Floats
    high: Floats


def share_bounds(hits: ArrayLike, n: ArrayLike, *, alpha: float) -> tuple[Floats, Floats]:
    """Clopper-Pearson bounds of shares, each one-sided with error `alpha`; fractional counts are allowed.

    Clopper & Pearson (1934), Biometrika 26:404. Conservative also for items of different probability
    (Hoeffding 1956, Ann Math Stat 27:713), such as anchors that are judged again.

    >>> low, high = share_bounds([0, 10], [10, 10], alpha=0.025)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.6915], [0.3085, 1.0])
    """
    ones, items = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
    low = np.where(ones > 0, betaincinv(np.maximum(ones, 1e-9), items - ones + 1, alpha), 0.0)
    rest = np.maximum(items - ones, 1e-9)
    high = np.where(items > ones, betaincinv(ones + 1, rest, 1 - alpha), 1.0)
    return low, high


def night_band(nights: Sequence[Sample], *, alpha: float, tolerance: float = TOLERANCE) -> Band:
    """Band of a rate from the nights of its baseline.

    Parameters
    ----------
    nights : at least 7, best whole weeks; each a sample of ones and zeros, with weights or without; leading
        shape (...). A night without an item does not count.
    alpha : error of the interval of the rate, both sides together: of one criterion of the family.
    tolerance : smallest distance from that interval that counts as drift.

    Returns
    -------
    Band : the interval, widened by the tolerance, or by twice the standard deviation of the true rate between
        nights (the variance of nightly rates beyond that of the sampling) if that is more. The interval is
        the wider one of Student's over nights and Clopper-Pearson's over items.

    Raises
    ------
    ValueError : fewer than 7 nights with an item.
    """
    n = np.stack([night.n() for night in nights])
    used = n > 0
    count = used.sum(axis=0)
    if np.any(count < FEWEST_NIGHTS):
        raise ValueError(f"a baseline needs {FEWEST_NIGHTS} nights, not {int(np.min(count))}")
    rates = np.where(used, np.stack([night.mean() for night in nights]), 0.0)
    rate = rates.sum(axis=0) / count
    between = (np.where(used, rates - rate, 0.0) ** 2).sum(axis=0) / (count - 1)
    # The sampling variance of a night's rate: sum of (value - rate)^2 over its items, by n (n - 1).
    squares = np.stack([(one.counts * (one.values - rate[..., np.newaxis]) ** 2).sum(-1) for one in nights])
    within = np.where(used, squares / np.maximum(n * (n - 1), 1), 0.0).sum(axis=0) / count
    spread = np.sqrt(np.maximum(between - within, 0.0))
    margin = stdtrit(count - 1, 1 - alpha / 2) * np.sqrt(between / count)
    effective = np.where(within > 0, rate * (1 - rate) / np.where(within > 0, within, 1.0), 0.0) * count
    items = np.minimum(n.sum(axis=0), np.where(effective > 0, effective, np.inf))
    low, high = share_bounds(rate * items, items, alpha=alpha / 2)
    allowed = np.maximum(tolerance, SPREADS * spread)
    return Band(
        rate,
        np.clip(np.minimum(low, rate - margin) - allowed, 0.0, 1.0),
        np.clip(np.maximum(high, rate + margin) + allowed, 0.0, 1.0),
    )


def flip_band(flips: ArrayLike, judged: ArrayLike, *, alpha: float, tolerance: float = TOLERANCE) -> Band:
    """Band of the share of anchors whose answer differs from their baseline answer, without drift.

    Parameters
    ----------
    flips, judged : of the anchors judged again with the same judge (A/A), any one shape; judged above 0.
    alpha : error of the upper bound. tolerance : added to it.

    Returns
    -------
    Band : `low` is 0: fewer flips are no drift.

    Examples
    --------
    >>> band = flip_band(30, 1000, alpha=0.025)
    >>> band.rate.item(), band.high.round(4).item()
    (0.03, 0.0526)
    """
    ones, items = np.asarray(flips, dtype=np.float64), np.asarray(judged, dtype=np.float64)
    if np.any(items <= 0):
        raise ValueError("a baseline of anchors needs anchors that were judged again")
    _, high = share_bounds(ones, items, alpha=alpha)
    return Band(ones / items, np.zeros(items.shape), np.minimum(1.0, high + tolerance))


def mean_flip_band(nights: Sequence[Sample], *, alpha: float, tolerance: float = TOLERANCE) -> Band:
    """Band of the mean share of criteria that flip, over the anchors of the A/A nights.

    Parameters
    ----------
    nights : values are shares in [0, 1], one an anchor; leading shape (...). alpha : of the upper bound.

    Returns
    -------
    Band : Student's bound over the items of all nights. Anchors differ from each other as well as between
        nights, so it is conservative.

    Raises
    ------
    ValueError : fewer than 30 items.
    """
    n = sum(night.n() for night in nights)
    if np.any(np.asarray(n) < 30):
        raise ValueError("a baseline of anchors needs 30 anchors that were judged again")
    total = sum(night.total() for night in nights)
    squares = sum((one.counts * one.values**2).sum(axis=-1) for one in nights)
    rate = np.asarray(total / n)
    high = mean_flip_bound(n, total, squares, alpha=alpha, tolerance=tolerance)
    return Band(rate, np.zeros(rate.shape), high)


def mean_flip_bound(
    n: ArrayLike, total: ArrayLike, squares: ArrayLike, *, alpha: float, tolerance: float = TOLERANCE
) -> Floats:
    """Upper bound of a mean share from its items, their sum and the sum of their squares; see above.

    >>> mean_flip_bound(100, 3.0, 1.0, alpha=0.025).round(4).item()
    0.059
    """
    items = np.asarray(n, dtype=np.float64)
    rate = np.asarray(total) / items
    spread = np.maximum(np.asarray(squares) - items * rate**2, 0.0)
    error = np.sqrt(spread / (items * (items - 1)))
    return np.asarray(np.minimum(1.0, rate + stdtrit(items - 1, 1 - alpha) * error + tolerance))
