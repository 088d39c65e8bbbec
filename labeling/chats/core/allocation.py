"""Sample sizes by stratum: proportional, Neyman, equal or square-root allocation."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

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
) -> Floats:
    """Return the exact, unrounded number of chats by stratum.

    Parameters
    ----------
    sizes : chats in each stratum.
    n : chats to sample, at most the sum of `sizes`.
    rule : proportional to N, N S, 1 or sqrt N.
    spreads : for NEYMAN, the standard deviation S within each stratum.
    minimum : from each stratum, or all of a smaller one.

    Returns
    -------
    array, shape (strata,) : between the minimum and the stratum's size; sums to n.

    Raises
    ------
    AllocationError : n is larger than all strata together or smaller than the minimum of all.

    Notes
    -----
    Neyman (1934), J R Stat Soc 97:558; Cochran (1977), Sampling Techniques, chapter 5.

    Examples
    --------
    >>> allocated_shares([100, 300], 40, rule=AllocationRule.PROPORTIONAL).tolist()
    [10.0, 30.0]
    """
    largest = np.asarray(sizes, dtype=np.float64)
    least = np.minimum(largest, minimum)
    if not least.sum() <= n <= largest.sum():
        raise AllocationError(
            f"{n:g} chats cannot be sampled from {largest.sum():g} with at least {least.sum():g} wanted"
        )
    weights = _weights(largest, rule, spreads)
    if n == largest.sum() or not weights.any():
        return largest if n == largest.sum() else least
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
    """Scale the weights by one factor within bounds, so that they sum to n."""

    def kept(factor: float) -> Floats:
        shares: Floats = np.clip(factor * weights, least, largest)
        return shares

    def surplus(factor: float) -> float:
        return float(kept(factor).sum() - n)

    simple = n / weights.sum()
    if abs(surplus(simple)) < 1e-9:
        return kept(simple)
    filled = float((largest[weights > 0] / weights[weights > 0]).max())
    if surplus(filled) < 0:
        raise AllocationError("strata without spread would need more than their minimum")
    return kept(brentq(surplus, 0.0, filled, xtol=1e-12))


def allocation(
    sizes: Sequence[int],
    n: int,
    *,
    rule: AllocationRule,
    spreads: Sequence[float] | None = None,
    minimum: int = 0,
) -> list[int]:
    """Return whole numbers of chats by stratum (largest remainder); see `allocated_shares`.

    >>> allocation([500, 1000, 1500], 84, rule=AllocationRule.PROPORTIONAL)
    [14, 28, 42]
    """
    shares = allocated_shares(sizes, n, rule=rule, spreads=spreads, minimum=minimum)
    whole = np.floor(shares + 1e-9)
    open_places = int(n - whole.sum())
    first = np.argsort(whole - shares, kind="stable")[:open_places]
    whole[first] += 1
    return [int(value) for value in whole]
