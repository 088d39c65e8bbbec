"""How many chats a night's sample takes from each topic, and what kept it from taking more."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from labeling.chats.core.allocation import AllocationRule, allocation, expected_spread

# Spread of a topic whose verdicts never differed, relative to the largest: it is filled last, not never.
LEAST_SPREAD = 1e-6


@dataclass(frozen=True, slots=True)
class TopicStratum:
    """A topic of the sampling frame.

    Parameters
    ----------
    key : the topic's key.
    size : chats of the frame in it, 0 or more.
    spread : for NEYMAN, the standard deviation of a verdict; see `spread_over_criteria`.
    """

    key: str
    size: int
    spread: float = 0.5


@dataclass(frozen=True, slots=True)
class StratumAllocation:
    """Chats to sample from a topic: `n` of `size`."""

    key: str
    size: int
    n: int

    @property
    def probability(self) -> float:
        """Inclusion probability of each of its chats, n / N; 0 for an empty topic."""
        return self.n / self.size if self.size else 0.0


class Shortfall(StrEnum):
    """Why a sample is not the one that was asked for."""

    FEW_CHATS = "few_chats"  # the frame has fewer chats: all are taken
    CAPPED = "capped"  # topics at their cap leave the sample smaller
    MINIMUM_REDUCED = "minimum_reduced"  # the minimum of all topics is more than the sample
    UNSAMPLED_TOPICS = "unsampled_topics"  # some topics with chats get none: rates over all topics need all


@dataclass(frozen=True, slots=True)
class SampleAllocation:
    """The sample of one frame.

    Parameters
    ----------
    strata : one per topic, sorted by key.
    requested : chats asked for.
    minimum : chats of each topic (or all of a smaller one), as far as the sample allowed it.
    shortfalls : empty if the sample is the one that was asked for.
    """

    strata: tuple[StratumAllocation, ...]
    requested: int
    minimum: int
    shortfalls: tuple[Shortfall, ...]

    @property
    def n(self) -> int:
        """Chats in the sample."""
        return sum(stratum.n for stratum in self.strata)

    @property
    def unsampled(self) -> tuple[str, ...]:
        """Keys of topics that have chats but none in the sample."""
        return tuple(stratum.key for stratum in self.strata if stratum.n == 0 < stratum.size)


def allocate(
    strata: Iterable[TopicStratum],
    n: int,
    *,
    rule: AllocationRule,
    minimum: int = 1,
    maximum: int | None = None,
) -> SampleAllocation:
    """Allocate a sample to topics, with the largest remainder; a frame that is too small gives what it has.

    Parameters
    ----------
    strata : the topics, in any order.
    n : chats to sample, 0 or more.
    rule : proportional to N, N S (Neyman), 1 or sqrt N.
    minimum : from each topic, or all of a smaller one. If n is less than that in all, the largest minimum
        that fits takes its place.
    maximum : cap of each topic; None for no cap.

    Returns
    -------
    SampleAllocation : no topic above its size or cap, the sum never above n. It does not depend on the order
        of the strata: equal remainders go to the first keys.

    Raises
    ------
    ValueError : a negative number, a key twice, or a minimum above the maximum.

    Notes
    -----
    Neyman (1934), J R Stat Soc 97:558; Cochran (1977), Sampling Techniques, chapter 5. A topic without spread
    is filled after the others.

    Examples
    --------
    >>> topics = [TopicStratum("refund", 300), TopicStratum("delivery", 100), TopicStratum("other", 4)]
    >>> found = allocate(topics, 40, rule=AllocationRule.PROPORTIONAL, minimum=3)
    >>> [(one.key, one.n) for one in found.strata], found.shortfalls
    ([('delivery', 9), ('other', 3), ('refund', 28)], ())
    """
    ordered = sorted(strata, key=lambda stratum: stratum.key)
    _check(ordered, n, minimum, maximum)
    sizes = [stratum.size for stratum in ordered]
    limits = sizes if maximum is None else [min(size, maximum) for size in sizes]
    target = min(n, sum(limits))
    feasible = _feasible_minimum(limits, target, minimum)
    counts = allocation(
        sizes, target, rule=rule, spreads=_positive(ordered), minimum=feasible, maximum=maximum
    )
    allocated = tuple(
        StratumAllocation(stratum.key, stratum.size, count)
        for stratum, count in zip(ordered, counts, strict=True)
    )
    shortfalls = {
        Shortfall.FEW_CHATS: sum(sizes) < n,
        Shortfall.CAPPED: sum(limits) < min(n, sum(sizes)),
        Shortfall.MINIMUM_REDUCED: feasible < minimum,
        Shortfall.UNSAMPLED_TOPICS: any(one.n == 0 < one.size for one in allocated),
    }
    return SampleAllocation(
        allocated, n, feasible, tuple(kind for kind, applies in shortfalls.items() if applies)
    )


def spread_over_criteria(verdicts: Iterable[tuple[int, int]]) -> float:
    """Standard deviation of a topic's verdicts, from earlier ones, as a compromise over the criteria.

    Parameters
    ----------
    verdicts : (passed, passed or failed) of each criterion judged.

    Returns
    -------
    float : root of the mean over criteria of p q, p shrunk to (x + 1) / (n + 2); 0.5 without verdicts.

    Notes
    -----
    Averaged variances for several characters: Cochran (1977), Sampling Techniques, section 5A.4.

    Examples
    --------
    >>> spread_over_criteria([]), round(spread_over_criteria([(97, 98), (49, 98)]), 4)
    (0.5, 0.3672)
    """
    variances = [expected_spread(passed, n) ** 2 for passed, n in verdicts]
    return math.sqrt(sum(variances) / len(variances)) if variances else expected_spread(0, 0)


def _check(strata: Sequence[TopicStratum], n: int, minimum: int, maximum: int | None) -> None:
    if n < 0 or minimum < 0 or any(stratum.size < 0 or stratum.spread < 0 for stratum in strata):
        raise ValueError("sizes, spreads, the sample and the minimum must be 0 or more")
    if maximum is not None and maximum < minimum:
        raise ValueError(f"the minimum of {minimum} chats is above the maximum of {maximum}")
    if len({stratum.key for stratum in strata}) < len(strata):
        raise ValueError("a topic is listed twice")


def _feasible_minimum(limits: Sequence[int], n: int, minimum: int) -> int:
    """The largest minimum, up to the one asked for, whose chats of all topics are at most n."""
    low, high = 0, min(minimum, max(limits, default=0))
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(limit, middle) for limit in limits) <= n:
            low = middle
        else:
            high = middle - 1
    return minimum if low == max(limits, default=0) else low


def _positive(strata: Sequence[TopicStratum]) -> list[float]:
    largest = max((stratum.spread for stratum in strata), default=0.0) or 1.0
    return [max(stratum.spread, LEAST_SPREAD * largest) for stratum in strata]
