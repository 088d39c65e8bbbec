"""Differences between variants under daily peeking, the sample-ratio check, and detectable effects."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from alignment.statistics.sequential import (
    SampleRatio,
    Totals,
    minimum_detectable,
    planned_variance,
    sample_ratio,
    sequential_difference,
    sequential_margin,
)


def arm(
    draw: np.random.Generator,
    rate: float,
    *,
    runs: int,
    days: int,
    arriving: int,
    again: float,
    within: float,
) -> np.ndarray:
    """Daily running sums of the six totals, shape (6, runs, days): units arrive daily and come again.

    again : mean later chats a unit and day, very uneven over units. within : correlation within a unit.
    """
    shape = (runs, arriving * days)
    shares = draw.beta(rate * (1 / within - 1), (1 - rate) * (1 / within - 1), shape)
    activity = draw.gamma(0.5, 2.0 * again, shape)
    arrival = np.repeat(np.arange(days), arriving)
    n, passed = np.zeros(shape), np.zeros(shape)
    found = np.empty((6, runs, days))
    for day in range(days):
        chats = np.where(arrival <= day, draw.poisson(activity), 0) * (arrival < day) + (arrival == day)
        n += chats
        passed += draw.binomial(chats, shares)
        sums = ((n > 0), passed, n, passed**2, n**2, passed * n)
        found[:, :, day] = [one.sum(axis=1) for one in sums]
    return found


def misses(rate: float, difference: float, *, runs: int, days: int, seed: int, **units) -> np.ndarray:
    """By run: whether any day's sequential interval, or any day's plain one, missed the difference."""
    draw = np.random.default_rng(seed)
    arms = [arm(draw, p, runs=runs, days=days, **units) for p in (rate, rate + difference)]
    missed = np.zeros((2, runs), dtype=bool)
    for run in range(runs):
        for day in range(days):
            control, variant = (Totals(int(one[0, run, day]), *one[1:, run, day]) for one in arms)
            found = sequential_difference(control, variant)
            if found.value is None or found.interval is None:
                continue
            missed[0, run] |= not found.interval.low <= difference <= found.interval.high
            plain = 1.96 * (control.variance() + variant.variance()) ** 0.5
            missed[1, run] |= abs(found.value - difference) > plain
    return np.asarray(missed.mean(axis=1))


def test_intervals_keep_95_percent_under_daily_peeking_where_plain_ones_do_not() -> None:
    sequential, plain = misses(0.9, -0.03, runs=150, days=30, seed=1, arriving=30, again=0.2, within=0.3)
    assert sequential <= 0.05
    assert plain > 0.10


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("rate", "difference", "units"),
    [
        (0.9, 0.0, {"arriving": 40, "again": 0.2, "within": 0.3}),
        (0.9, -0.05, {"arriving": 40, "again": 0.2, "within": 0.3}),
        (0.9, 0.0, {"arriving": 20, "again": 1.0, "within": 0.6}),
        (0.97, 0.0, {"arriving": 10, "again": 0.2, "within": 0.3}),
        (0.99, 0.0, {"arriving": 10, "again": 0.2, "within": 0.3}),
        (0.5, 0.05, {"arriving": 40, "again": 0.0, "within": 0.01}),
    ],
)
def test_intervals_keep_95_percent_over_60_days(
    rate: float, difference: float, units: dict[str, float]
) -> None:
    sequential, _ = misses(rate, difference, runs=300, days=60, seed=7, **units)
    assert sequential <= 0.05


def test_the_margin_inverts_the_normal_mixture() -> None:
    """By its definition: the likelihood ratio against 0, averaged over N(0, t^2), is 1 / alpha there."""

    def mixture(seen: float) -> float:
        wide = (0.02**2 + 0.05**2) ** 0.5
        return float(norm.pdf(seen, scale=wide) / norm.pdf(seen, scale=0.02)) - 20

    assert sequential_margin(0.02**2) == pytest.approx(brentq(mixture, 0, 0.2))


def test_units_with_one_chat_have_the_variance_of_independent_answers() -> None:
    totals = Totals.of_units(np.arange(1000) % 10 > 0, np.ones(1000))
    assert totals.variance() == pytest.approx(0.9 * 0.1 / 1000, rel=0.01)


def test_units_that_repeat_one_answer_count_once_each() -> None:
    single = Totals.of_units(np.arange(1000) % 10 > 0, np.ones(1000))
    tenfold = Totals.of_units(10 * (np.arange(1000) % 10 > 0), np.full(1000, 10))
    assert tenfold.variance() == pytest.approx(single.variance(), rel=0.01)


def test_units_that_all_passed_still_have_an_error() -> None:
    assert Totals.of_units(np.ones(50), np.ones(50)).variance() == pytest.approx((51 / 52) * (1 / 52) / 50)


def test_units_without_an_applicable_chat_do_not_count() -> None:
    assert Totals.of_units([1, 0], [2, 0]) == Totals.of_units([1], [2])
    with pytest.raises(ValueError, match="0 <= passed <= n"):
        Totals.of_units([3], [2])


def test_few_units_have_a_difference_without_an_interval() -> None:
    few, many = Totals.of_units(np.ones(29), np.ones(29)), Totals.of_units(np.ones(30), np.ones(30))
    found = sequential_difference(few, many)
    assert (found.value, found.interval, found.reason) == (0.0, None, "too few units: 29 of 30")
    nothing = Totals.of_units([], [])
    assert sequential_difference(nothing, many).reason == "a variant has no applicable chat"


def test_a_looked_at_once_effect_is_that_of_the_textbook() -> None:
    """Fleiss, Levin & Paik (2003), chapter 4, without continuity correction: (z + z) standard errors."""
    variance = planned_variance(0.9, units=(1000, 1000), chats_per_unit=1, correlation=0.0)
    assert minimum_detectable(variance, typical=None) == pytest.approx(2.8016 * variance**0.5, rel=1e-4)
    assert minimum_detectable(variance) > minimum_detectable(variance, typical=None)


def test_the_detectable_effect_is_found_with_its_power() -> None:
    draw = np.random.default_rng(3)
    variance = planned_variance(0.9, units=(2000, 2000), chats_per_unit=1, correlation=0.0)
    effect = minimum_detectable(variance, power=0.8)
    found = draw.normal(effect, variance**0.5, 20_000) > sequential_margin(variance)
    assert found.mean() == pytest.approx(0.8, abs=0.01)


def test_chats_of_the_same_units_add_less_than_chats_of_new_ones() -> None:
    few = planned_variance(0.9, units=(100, 100), chats_per_unit=10, correlation=0.5)
    many = planned_variance(0.9, units=(1000, 1000), chats_per_unit=1, correlation=0.5)
    assert few == pytest.approx(5.5 * many)


def test_a_published_mismatch_is_found() -> None:
    """Kohavi, Tang & Xu (2020), Trustworthy Online Controlled Experiments, chapter 3: p = 1.8e-6."""
    found = sample_ratio([821_588, 815_482], [0.5, 0.5])
    assert found.p == pytest.approx(1.8e-6, rel=0.03)
    assert found.mismatch


def test_counts_as_planned_are_no_mismatch() -> None:
    assert not sample_ratio([9_000, 1_000], [0.9, 0.1]).mismatch
    assert sample_ratio([0, 0], [0.5, 0.5]) == SampleRatio(None, 0.0, False)
    with pytest.raises(ValueError, match="planned share"):
        sample_ratio([1, 2], [1.0])


def test_evidence_of_a_mismatch_has_mean_1_under_the_plan() -> None:
    """By enumeration of all splits of 12 units: an e-value."""
    chances = binom.pmf(np.arange(13), 12, 0.3)
    evidence = [10 ** sample_ratio([k, 12 - k], [0.3, 0.7]).log10_evidence for k in range(13)]
    assert float(chances @ np.array(evidence)) == pytest.approx(1.0)


def test_daily_checks_of_sound_assignments_find_no_mismatch() -> None:
    draw = np.random.default_rng(4)
    arrivals = draw.binomial(100, 0.5, (100, 30)).cumsum(axis=1)
    flagged = [
        any(sample_ratio([int(a), 100 * day - int(a)], [0.5, 0.5]).mismatch for day, a in enumerate(row, 1))
        for row in arrivals
    ]
    assert sum(flagged) == 0


def test_a_broken_assignment_is_found_within_days() -> None:
    assert sample_ratio([300, 200], [0.5, 0.5]).mismatch
    assert not sample_ratio([30, 20], [0.5, 0.5]).mismatch
