"""Evidence that a mean has risen above its bound: valid on every night, whatever is sampled."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from alignment.alerts.core.detectors import (
    BETS,
    Detector,
    Sample,
    expected_nights,
    false_alarms_a_month,
    mean_evidence,
    threshold,
)


def after(nights, bound, **looks) -> Detector:
    """A detector after nights of (hits, n)."""
    detector = Detector.empty()
    for hits, n in nights:
        detector = detector.update(Sample.of_counts(hits, n), bound, **looks)
    return detector


def evidence(detector: Detector) -> float:
    return math.exp(detector.log_evidence())


def test_evidence_is_the_mean_over_bets_of_processes_started_on_each_night() -> None:
    def factor(c: float, hits: int, n: int) -> float:
        return (1 + c * (1 / 0.1 - 1)) ** hits * (1 - c) ** (n - hits)

    wanted = np.mean([(factor(c, 2, 5) + 1) * factor(c, 1, 5) / 365 for c in BETS])
    assert evidence(after([(2, 5), (1, 5)], 0.1)) == pytest.approx(wanted)


def test_at_the_bound_expected_evidence_is_the_share_of_the_year_that_has_passed() -> None:
    """By enumeration of all outcomes: an e-detector without slack."""
    chances = binom.pmf(np.arange(6), 5, 0.1)
    expected = sum(
        chances[a] * chances[b] * evidence(after([(a, 5), (b, 5)], 0.1))
        for a, b in itertools.product(range(6), repeat=2)
    )
    assert expected == pytest.approx(2 / 365)


def test_anchors_that_differ_are_covered_if_their_mean_is_at_most_the_bound() -> None:
    shares = np.array([0.0, 0.05, 0.25])
    expected = 0.0
    for flips in itertools.product([0, 1], repeat=3):
        chance = float(np.prod(np.where(np.array(flips) == 1, shares, 1 - shares)))
        expected += chance * evidence(after([(sum(flips), 3)], 0.1))
    assert 0.9 / 365 < expected <= 1 / 365


def test_chats_drawn_without_replacement_are_covered() -> None:
    chances = hypergeom.pmf(np.arange(4), 10, 3, 4)
    expected = sum(chance * evidence(after([(hits, 4)], 0.3)) for hits, chance in enumerate(chances.tolist()))
    assert expected <= 1 / 365


def test_a_weighted_sample_of_strata_is_covered() -> None:
    """Topics of 900 and 100 chats, two sampled of each: rates .05 and .55, so .1 of all chats."""
    expected = 0.0
    for big, small in itertools.product(range(3), repeat=2):
        sample = Sample.of_strata([big, small], [2, 2], [450.0, 50.0])
        chance = binom.pmf(big, 2, 0.05) * binom.pmf(small, 2, 0.55)
        expected += chance * evidence(Detector.empty().update(sample, 0.1))
    assert 0.95 / 365 < expected <= 1 / 365


def test_equal_weights_are_no_weights() -> None:
    weighted = Detector.empty().update(Sample.of_strata([1, 2], [4, 6], [3.0, 3.0]), 0.1)
    assert weighted.log_evidence() == pytest.approx(after([(3, 10)], 0.1).log_evidence())


@pytest.mark.parametrize("bound", [0.03, 0.5, 0.97])
def test_a_year_of_looks_at_the_bound_itself_keeps_its_alpha(bound: float) -> None:
    """1,000 years, looked at every night; rates at the bound are the worst case."""
    draw, limit = np.random.default_rng(5), math.log(threshold(0.05, members=1))
    detector, alarmed = Detector.empty((1000,)), np.zeros(1000, dtype=bool)
    for _ in range(365):
        hits = draw.binomial(100, bound, 1000)
        detector = detector.update(Sample.of_counts(hits, np.full(1000, 100)), np.full(1000, bound))
        alarmed |= detector.log_evidence() >= limit
    assert 0.005 < alarmed.mean() <= 0.05


def drifts(quiet: int, *, runs: int = 200) -> np.ndarray:
    """Nights from a change .03 to .10 to its alarm (bound .05, 100 a night), after so many quiet ones."""
    draw, limit = np.random.default_rng(quiet), math.log(1000)
    detector, found = Detector.empty((runs,)), np.full(runs, -1)
    for night in range(quiet + 60):
        hits = draw.binomial(100, 0.03 if night < quiet else 0.10, runs)
        detector = detector.update(Sample.of_counts(hits, np.full(runs, 100)), np.full(runs, 0.05))
        new = (found < 0) & (detector.log_evidence() >= limit)
        found[new] = night - quiet + 1
        if night == quiet + 20:
            ages, means = detector.age(), detector.mean()
    assert 20 <= np.median(ages) <= 22
    assert np.median(means) == pytest.approx(0.10, abs=0.005)
    return found


def test_a_change_after_300_quiet_nights_is_found_as_fast_as_after_30_and_dated() -> None:
    early, late = drifts(30), drifts(300)
    assert min(early.min(), late.min()) > 0
    assert abs(np.mean(early) - np.mean(late)) < 1
    expected = expected_nights(0.10, bound=0.05, per_night=100, limit=1000)
    assert np.mean(late) == pytest.approx(expected, rel=0.25)


def test_a_change_within_the_bound_is_never_expected() -> None:
    assert expected_nights(0.05, bound=0.05, per_night=500, limit=100) is None
    assert expected_nights(0.9, bound=0.05, per_night=500, limit=100) == 1.0


def test_a_night_without_an_item_changes_nothing_but_the_chance_of_a_start() -> None:
    quiet = after([(2, 5), (0, 0)], 0.1)
    assert evidence(quiet) == pytest.approx(evidence(after([(2, 5)], 0.1)) + 1 / 365)
    assert np.isnan(Sample.of_counts(0, 0).mean())
    assert Sample.of_strata([0, 0], [0, 0], [1.0, 2.0]).n() == 0


def test_a_test_of_one_hypothesis_starts_at_one_and_needs_no_year() -> None:
    detector = Detector.test().update(Sample.of_counts(5, 5), 0.5, looks_a_year=None)
    assert evidence(detector) == pytest.approx(float(np.mean((1 + BETS) ** 5)))


def test_evidence_of_dependent_streams_is_averaged() -> None:
    one, two = after([(5, 5)], 0.1), after([(0, 5)], 0.1)
    assert math.exp(mean_evidence(one, two)) == pytest.approx((evidence(one) + evidence(two)) / 2)


def test_evidence_of_a_landslide_stays_finite() -> None:
    assert np.isfinite(after([(5000, 5000)] * 30, 0.001).log_evidence())


def test_the_threshold_and_its_false_alarms_a_month_are_two_sides_of_one_setting() -> None:
    assert threshold(0.05, members=43) == pytest.approx(860)
    assert false_alarms_a_month(860, members=43) == pytest.approx(0.05 / 12)
    with pytest.raises(ValueError, match="alpha"):
        threshold(0.0, members=1)


def test_a_bound_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        after([(0, 5)], 0.0)
