"""Frozen baselines: bands that hold the true rate, and widen with nights that differ."""

import numpy as np
import pytest

from alignment.alerts.core.baselines import flip_band, mean_flip_band, night_band, share_bounds
from alignment.alerts.core.detectors import Sample


def nights(rate: float, *, families: int, n: int = 200, spread: float = 0.0, seed: int = 1) -> list[Sample]:
    draw = np.random.default_rng(seed)
    rates = [np.clip(draw.normal(rate, spread, families), 0, 1) for _ in range(28)]
    return [Sample.of_counts(draw.binomial(n, one), np.full(families, n)) for one in rates]


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    """Newcombe (1998), Stat Med 17:857, table I, method 5: 81/263, 15/148, 0/20, 1/29."""
    low, high = share_bounds([81, 15, 0, 1], [263, 148, 20, 29], alpha=0.025)
    assert low.round(4).tolist() == [0.2527, 0.0578, 0.0, 0.0009]
    assert high.round(4).tolist() == [0.3676, 0.1617, 0.1684, 0.1776]


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_without_tolerance_the_band_of_steady_nights_holds_the_true_rate(rate: float) -> None:
    band = night_band(nights(rate, families=2000), alpha=0.05, tolerance=0.0)
    assert ((band.low <= rate) & (rate <= band.high)).mean() >= 0.95


def test_the_band_is_at_least_the_tolerance_wide() -> None:
    band = night_band(nights(0.9, families=200), alpha=0.05, tolerance=0.02)
    assert (band.rate - band.low >= 0.02).all()
    assert (band.high - band.rate >= 0.02).all()


def test_nights_that_differ_widen_the_band_by_twice_their_standard_deviation() -> None:
    steady = night_band(nights(0.8, families=500, n=2000), alpha=0.05, tolerance=0.0)
    uneven = night_band(nights(0.8, families=500, n=2000, spread=0.03), alpha=0.05, tolerance=0.0)
    error = 2.05 * 0.03 / 28**0.5
    assert (uneven.rate - uneven.low).mean() == pytest.approx(2 * 0.03 + error, rel=0.05)
    assert (steady.rate - steady.low).mean() < 0.015


def test_weighted_nights_give_the_weighted_rate() -> None:
    draw = np.random.default_rng(2)
    counts = [draw.binomial([90, 10], [0.95, 0.5]) for _ in range(28)]
    samples = [Sample.of_strata(one, [90, 10], [1.0, 9.0]) for one in counts]
    band = night_band(samples, alpha=0.05)
    assert float(band.rate) == pytest.approx(0.725, abs=0.03)
    assert float(band.low) < 0.725 < float(band.high)


def test_nights_that_all_passed_are_no_certainty() -> None:
    band = night_band([Sample.of_counts([50], [50])] * 7, alpha=0.05)
    assert band.rate.tolist() == [1.0]
    assert band.low[0] == pytest.approx(0.025 ** (1 / 350) - 0.01)
    assert band.high.tolist() == [1.0]


def test_a_baseline_needs_seven_nights_with_an_answer() -> None:
    full, empty = Sample.of_counts([9], [10]), Sample.of_counts([0], [0])
    night_band([full] * 7 + [empty], alpha=0.05)
    with pytest.raises(ValueError, match="needs 7 nights, not 6"):
        night_band([full] * 6 + [empty] * 9, alpha=0.05)


def test_flips_have_an_upper_bound_alone() -> None:
    band = flip_band([0, 30], [1000, 1000], alpha=0.025, tolerance=0.01)
    assert band.low.tolist() == [0.0, 0.0]
    assert band.high.round(4).tolist() == [0.0137, 0.0526]
    with pytest.raises(ValueError, match="judged again"):
        flip_band([0], [0], alpha=0.025)


def test_the_mean_share_of_flips_is_bounded_over_anchors() -> None:
    night = Sample(np.array([0.0, 0.5]), np.array([90.0, 10.0]))
    band = mean_flip_band([night] * 4, alpha=0.025, tolerance=0.0)
    error = (400 * 0.05 * 0.45 / (400 * 399)) ** 0.5
    assert float(band.rate) == 0.05
    assert float(band.high) == pytest.approx(0.05 + 1.966 * error, rel=1e-3)
    with pytest.raises(ValueError, match="30 anchors"):
        mean_flip_band([Sample(np.array([0.0]), np.array([29.0]))], alpha=0.025)
