"""Rates over all chats from stratified samples: unbiased, with right errors and intervals that hold."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from alignment.monitoring.core.weighted_rates import (
    Reason,
    StratumSums,
    WeightedRate,
    weighted_rate,
    weighted_rates,
)
from alignment.statistics.intervals import wilson
from labeling.chats.core.allocation import AllocationRule
from labeling.sampling.core import TopicStratum, allocate
from tests.factories.production_samples import PASSING, SIZES, Topic, counted_draws, share_passing

Floats = NDArray[np.float64]
DRAWS = 2000


def night(n: int, rule: AllocationRule, *, passing: tuple[float, ...] = PASSING) -> list[Topic]:
    frame = [TopicStratum(f"{number}", size) for number, size in enumerate(SIZES)]
    shares = allocate(frame, n, rule=rule, minimum=10).strata
    return [Topic(one.size, one.n, rate) for one, rate in zip(shares, passing, strict=True)]


NIGHTS = {
    f"{rule} {n}": night(n, rule)
    for rule in (AllocationRule.PROPORTIONAL, AllocationRule.EQUAL, AllocationRule.SQRT)
    for n in (200, 500)
} | {
    "nearly all pass": night(300, AllocationRule.SQRT, passing=(0.99,) * 8),
    "half pass": night(300, AllocationRule.SQRT, passing=(0.5,) * 8),
}


def value_of(found: WeightedRate) -> float:
    assert found.estimate.value is not None
    return found.estimate.value


# ---------- exact values ----------


def test_the_published_stratified_share() -> None:
    """Cochran (1977), chapter 5: 50 of 9,000 with 95%, 50 of 1,000 with 60%; the plain mean is 0.775."""
    found = weighted_rate(
        [StratumSums(9000, 50, 50, 47.5, 50, 47.5, 47.5), StratumSums(1000, 50, 50, 30, 50, 30, 30)]
    )
    assert value_of(found) == pytest.approx(0.915, abs=1e-12)
    assert found.error == pytest.approx(0.02876408262016351, abs=1e-12)


def every_sample(population: list[list[float]], sizes: tuple[int, ...]) -> list[WeightedRate]:
    """Rates of all possible stratified samples of a population of scores."""
    choices = [itertools.combinations(scores, n) for scores, n in zip(population, sizes, strict=True)]
    return [
        weighted_rate(
            [
                StratumSums.of_chats(size=len(scores), answers=np.ones(len(own)), passes=own)
                for scores, own in zip(population, drawn, strict=True)
            ]
        )
        for drawn in itertools.product(*choices)
    ]


@pytest.mark.parametrize(
    "population",
    [[[1, 1, 0, 1, 0], [1, 0, 1, 1, 1, 1]], [[0.5, 1, 0.25, 1, 0], [1, 0.75, 0.6, 1, 0.1, 0.9]]],
    ids=["a criterion", "session scores"],
)
def test_over_all_possible_samples_the_rate_and_its_squared_error_are_unbiased(
    population: list[list[float]],
) -> None:
    found = every_sample(population, (2, 3))
    values = np.array([value_of(one) for one in found])
    squares = [one.error**2 for one in found if one.error is not None]
    assert values.mean() == pytest.approx(np.mean(np.concatenate(population)))
    assert np.mean(squares) == pytest.approx(values.var())


def test_single_chats_of_many_strata_do_not_understate_the_error() -> None:
    """30 topics of 200 chats, one drawn of each; their rates run from 0.70 to 1."""
    topics = [Topic(200, 1, float(rate)) for rate in np.linspace(0.7, 1, 30)]
    found = [weighted_rate(strata) for strata in counted_draws(topics, draws=DRAWS, seed=3)]
    squares = [one.error**2 for one in found if one.error is not None]
    assert np.mean(squares) > 0.97 * np.var([value_of(one) for one in found])


def test_many_rates_at_once_are_those_of_each_alone() -> None:
    frames = [
        *counted_draws(night(200, AllocationRule.SQRT), draws=3, seed=1),
        [],
        [StratumSums.of_counts(size=9, sampled=4, passed=3, failed=0)],
    ]
    assert weighted_rates(frames) == [weighted_rate(frame) for frame in frames]
    assert weighted_rates([]) == []


def test_a_simple_random_sample_has_nearly_the_plain_wilson_interval() -> None:
    found = weighted_rate([StratumSums.of_counts(size=10**7, sampled=200, passed=170, failed=30)])
    plain = wilson(170, 200)
    assert plain is not None and found.estimate.interval is not None
    assert found.estimate.interval.low == pytest.approx(plain.low, abs=0.001)
    assert found.estimate.interval.high == pytest.approx(plain.high, abs=0.001)


def jackknife(strata: list[tuple[int, Floats]], rate: float) -> float:
    """Standard error of sum w y / sum w a by leaving out one chat after another (Wolter 2007)."""

    def ratio(parts: list[Floats]) -> float:
        sums = sum(size / len(own) * own.sum(axis=0) for (size, _), own in zip(strata, parts, strict=True))
        assert isinstance(sums, np.ndarray)
        return float(sums[1] / sums[0])

    total, rows = 0.0, [own for _, own in strata]
    for h, (size, own) in enumerate(strata):
        n = len(own)
        without = [ratio([*rows[:h], np.delete(own, i, axis=0), *rows[h + 1 :]]) for i in range(n)]
        total += (1 - n / size) * (n - 1) / n * sum((one - rate) ** 2 for one in without)
    return math.sqrt(total)


@pytest.mark.parametrize("most", [1, 4], ids=["one criterion, often not applicable", "a dimension of four"])
def test_the_error_of_a_ratio_is_that_of_the_jackknife(most: int) -> None:
    rng = np.random.default_rng(5)
    strata = []
    for size, n, p in ((4000, 150, 0.9), (700, 120, 0.7), (300, 90, 0.8)):
        answers = rng.binomial(most, 0.6, n)
        strata.append((size, np.column_stack([answers, rng.binomial(answers, p)]).astype(float)))
    found = weighted_rate(
        [StratumSums.of_chats(size=size, answers=own[:, 0], passes=own[:, 1]) for size, own in strata]
    )
    assert found.error == pytest.approx(jackknife(strata, value_of(found)), rel=0.02)


def test_counts_and_chats_give_the_same_sums() -> None:
    answers, passes = np.repeat([1, 1, 0], [6, 1, 2]), np.repeat([1, 0, 0], [6, 1, 2])
    chats = StratumSums.of_chats(size=50, answers=answers, passes=passes)
    assert chats == StratumSums.of_counts(size=50, sampled=9, passed=6, failed=1)


def test_where_every_chat_was_judged_nothing_is_uncertain() -> None:
    found = weighted_rate([StratumSums.of_counts(size=20, sampled=20, passed=15, failed=5)])
    assert found.estimate.interval is not None
    assert (found.estimate.interval.low, found.estimate.interval.high) == (0.75, 0.75)
    assert (found.error, found.effective) == (0.0, math.inf)


def test_where_all_pass_the_interval_still_has_a_width() -> None:
    found = weighted_rate([StratumSums.of_counts(size=10**6, sampled=50, passed=50, failed=0)])
    assert found.estimate.interval is not None
    assert found.estimate.interval.high == 1.0
    assert found.estimate.interval.low == pytest.approx(0.93, abs=0.005)  # Wilson: 0.929


# ---------- reasons ----------


def test_an_unsampled_stratum_leaves_no_rate_and_says_what_is_covered() -> None:
    found = weighted_rate(
        [
            StratumSums.of_counts(size=90, sampled=9, passed=6, failed=3),
            StratumSums.of_counts(size=10, sampled=0, passed=0, failed=0),
        ]
    )
    assert (found.estimate.value, found.reason, found.covered) == (None, Reason.UNSAMPLED, 0.9)
    assert found.estimate.reason


def test_an_empty_stratum_does_not_count() -> None:
    judged = StratumSums.of_counts(size=90, sampled=9, passed=6, failed=3)
    assert weighted_rate([judged, StratumSums(0, 0, 0, 0, 0, 0, 0)]) == weighted_rate([judged])


def test_no_chats_and_no_answers_are_told_apart() -> None:
    assert weighted_rate([]).reason is Reason.NO_CHATS
    silent = StratumSums.of_counts(size=90, sampled=9, passed=0, failed=0)
    assert weighted_rate([silent]).reason is Reason.NO_ANSWERS


# ---------- simulation: 2,000 draws of each night ----------


def coverage(topics: list[Topic], *, seed: int, draws: int = DRAWS) -> float:
    """Share of draws whose interval holds the truth; the rate must be unbiased to 3 standard errors."""
    truth, values, held = share_passing(topics), [], 0
    for found in weighted_rates(list(counted_draws(topics, draws=draws, seed=seed))):
        estimate = found.estimate
        assert estimate.value is not None and estimate.interval is not None
        values.append(estimate.value)
        held += estimate.interval.low <= truth <= estimate.interval.high
    assert abs(np.mean(values) - truth) <= 3 * np.std(values, ddof=1) / math.sqrt(draws)
    return held / draws


def test_rates_are_unbiased_and_their_intervals_hold() -> None:
    found = {name: coverage(topics, seed=21) for name, topics in NIGHTS.items()}
    assert 0.93 <= np.mean(list(found.values())) <= 0.97, found
    assert min(found.values()) >= 0.90, found


@pytest.mark.heavy
def test_intervals_hold_over_a_grid_of_nights() -> None:
    found = {}
    for n in (100, 200, 400, 1000):
        for rule in (AllocationRule.PROPORTIONAL, AllocationRule.EQUAL, AllocationRule.SQRT):
            for rate in (0.5, 0.8, 0.9, 0.95, 0.98):
                topics = night(n, rule, passing=tuple(np.clip(np.linspace(rate + 0.02, rate - 0.1, 8), 0, 1)))
                found[n, rule, rate] = coverage(topics, seed=n + round(100 * rate))
    assert 0.93 <= np.mean(list(found.values())) <= 0.97, found
    assert min(found.values()) >= 0.88, found
