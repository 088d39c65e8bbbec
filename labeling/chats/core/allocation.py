"""Sample sizes by stratum: proportional, Neyman, equal or square-root allocation."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class AllocationRule(StrEnum):
    """The quantity that a stratum's share of the sample is proportional to."""

    PROPORTIONAL = "proportional"
    NEYMAN = "neyman"
    EQUAL = "equal"
    SQRT = "sqrt"


class AllocationError(ValueError):
    """These strata do not allow a sample of this size."""


def expected_spread(successes: int, n: int) -> float:
    """Return the standard deviation sqrt(p q) of an answer, with p shrunk to (x + 1) / (n + 2).

    >>> expected_spread(0, 0)
    0.5
    """
    share = (successes + 1) / (n + 2)
    return float(np.sqrt(share * (1 - share)))


def allocated_shares(
    sizes: Sequence[int],
    n: float,
    *,
    rule: AllocationRule,
    spreads: Sequence[float] | None = None,
    minimum: int = 0,
    maximum: int | None = None,
) -> Floats:
    """Return the exact, unrounded number of chats by stratum.

    Parameters
    ----------
    sizes : chats in each stratum.
    n : chats to sample, at most the sum of `sizes`.
    rule : proportional to N, N S, 1 or sqrt N.
    spreads : for NEYMAN, the standard deviation S within each stratum.
    minimum : from each stratum, or all of a smaller one.
    maximum : from each stratum; None for no limit. It takes precedence over the minimum.

    Returns
    -------
    array, shape (strata,) : between the minimum and the smaller of size and maximum; sums to n.

    Raises
    ------
    AllocationError : n is larger than all strata allow together or smaller than the minimum of all.

    Notes
    -----
    Neyman (1934), J R Stat Soc 97:558; Cochran (1977), Sampling Techniques, chapter 5.

    Examples
    --------
    >>> allocated_shares([100, 300], 40, rule=AllocationRule.PROPORTIONAL).tolist()
    [10.0, 30.0]
    """
    whole = np.asarray(sizes, dtype=np.float64)
    largest = whole if maximum is None else np.minimum(whole, maximum)
    least = np.minimum(largest, minimum)
    if not least.sum() <= n <= largest.sum():
        raise AllocationError(
            f"{n:g} chats cannot be sampled from {largest.sum():g} with at least {least.sum():g} wanted"
        )
    weights = _weights(whole, rule, spreads)
    if n == largest.sum():
        return largest
    return _scaled(weights, least, largest, n)


def _weights(sizes: Floats, rule: AllocationRule, spreads: Sequence[float] | None) -> Floats:
    match rule:
        case AllocationRule.PROPORTIONAL:
            return sizes
        case AllocationRule.NEYMAN:
            return sizes * np.asarray(spreads, dtype=np.float64)
        case AllocationRule.EQUAL:
            return (sizes > 0).astype(np.float64)
        case AllocationRule.SQRT:
            return np.sqrt(sizes)


def _scaled(weights: Floats, least: Floats, largest: Floats, n: float) -> Floats:
    """Scale the weights by one factor within bounds, so that they sum to n.

    The sum is piecewise linear in the factor, with a bend where a stratum leaves its minimum or is full.
    """

    def kept(factor: float) -> Floats:
        shares: Floats = np.clip(factor * weights, least, largest)
        return shares

    some = weights > 0
    bends = np.unique(np.concatenate([[0.0], least[some] / weights[some], largest[some] / weights[some]]))
    sums = np.array([kept(bend).sum() for bend in bends])
    if sums[-1] < n - 1e-9:
        raise AllocationError("strata without spread would need more than their minimum")
    return kept(float(np.interp(n, sums, bends)))


def allocation(
    sizes: Sequence[int],
    n: int,
    *,
    rule: AllocationRule,
    spreads: Sequence[float] | None = None,
    minimum: int = 0,
    maximum: int | None = None,
) -> list[int]:
    """Return whole numbers of chats by stratum (largest remainder); see `allocated_shares`.

    Equal remainders are settled by the order of `sizes`.

    >>> allocation([500, 1000, 1500], 84, rule=AllocationRule.PROPORTIONAL)
    [14, 28, 42]
    """
    shares = allocated_shares(sizes, n, rule=rule, spreads=spreads, minimum=minimum, maximum=maximum)
    whole = np.floor(shares + 1e-9)
    open_places = int(n - whole.sum())
    first = np.argsort(np.round(whole - shares, 9), kind="stable")[:open_places]
    whole[first] += 1
    return [int(value) for value in whole]
