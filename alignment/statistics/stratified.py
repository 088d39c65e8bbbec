"""Share of True in all chats, from a stratified sample."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import normal_quantile


@dataclass(frozen=True)
class Stratum:
    """A stratum of `size` chats, `n` of them sampled and labelled, and their `share` of True in [0, 1]."""

    size: int
    n: int
    share: float


def stratified_share(strata: Sequence[Stratum], *, confidence: float = 0.95) -> Estimate:
    """Stratified estimate of a share: sum of W p, W = size / all, with a normal interval.

    Variance: sum of W^2 (1 - f) p (1 - p) / (n - 1), f = n / size.

    Parameters
    ----------
    strata : in any order; strata without chats are ignored.
    confidence : two-sided.

    Returns
    -------
    Estimate : clipped to [0, 1]. Undefined if a stratum has no label; without an interval if one has a single
        label and more chats.

    Notes
    -----
    Cochran (1977), Sampling Techniques, section 5.

    Examples
    --------
    >>> round(stratified_share([Stratum(9000, 50, 0.95), Stratum(1000, 50, 0.6)]).value, 3)
    0.915
    """
    filled = [stratum for stratum in strata if stratum.size]
    total = sum(stratum.size for stratum in filled)
    if not filled or any(stratum.n == 0 for stratum in filled):
        return Estimate(None, reason="a stratum has no label")
    value = sum(stratum.size / total * stratum.share for stratum in filled)
    if any(stratum.n == 1 < stratum.size for stratum in filled):
        return Estimate(value, reason="a stratum has a single label")
    return _normal(value, math.sqrt(sum(_variance(one, total) for one in filled)), confidence)


def _variance(stratum: Stratum, total: int) -> float:
    if stratum.n == stratum.size:
        return 0.0
    spread = stratum.share * (1 - stratum.share) / (stratum.n - 1)
    return float((stratum.size / total) ** 2 * (1 - stratum.n / stratum.size) * spread)


def _normal(value: float, error: float, confidence: float) -> Estimate:
    margin = normal_quantile(confidence) * error
    return Estimate(value, Interval(max(0.0, value - margin), min(1.0, value + margin)))
