"""Sums over units by day, and differences: against the units themselves, statsmodels and simulations."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

from alignment.experiments.core.comparison import (
    SEVERAL_JUDGES,
    Decision,
    Judge,
    corrected_difference,
    difference,
    sequence,
    variant_rates,
)
from alignment.experiments.core.unit_sums import ChatResult, Sums, running, unit_sums
from alignment.statistics.agreement import Confusion
from alignment.statistics.sequential import Totals

MONDAY = date(2026, 11, 2)


def chats(seed: int, *, units: int, days: int, weights: tuple[float, ...] = (1.0,)) -> list[ChatResult]:
    """Units with some chats on some days, their results alike within a unit."""
    draw = np.random.default_rng(seed)
    return [
        ChatResult(
            f"u{unit:03}",
            "ab"[unit % 2],
            1,
            MONDAY + timedelta(days=int(draw.integers(days))),
            bool(draw.random() < share),
            float(draw.choice(weights)),
        )
        for unit in range(units)
        for share in [draw.random()]
        for _ in range(int(draw.integers(1, 6)))
    ]


def by_unit(rows: list[ChatResult], variant: str) -> Totals:
    """The totals from each unit's sums, as they are defined."""
    names = sorted({row.unit for row in rows if row.variant == variant})
    own = [[row for row in rows if row.unit == name] for name in names]
    passed = [sum(row.weight for row in some if row.passed) for some in own]
    return Totals.of_units(passed, [sum(row.weight for row in some) for some in own])


def total(found: Any, variant: str) -> Sums:
    whole = Sums()
    for place, one in found.days.items():
        if place.variant == variant:
            whole.add(one)
    return whole


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 2.5, 40.0)])
def test_the_sums_of_the_days_are_those_of_the_units_on_every_day(weights: tuple[float, ...]) -> None:
    rows = chats(1, units=80, days=6, weights=weights)
    found = unit_sums(rows)
    days = sorted((place.day, one) for place, one in found.days.items() if place.variant == "a")
    for day, sums in running(sorted(days, key=lambda pair: pair[0])):
        expected = by_unit([row for row in rows if row.day <= day], "a")
        assert sums.units == expected.units
        assert vars_of(sums.totals) == pytest.approx(vars_of(expected))


def vars_of(totals: Totals) -> list[float]:
    return [totals.passed, totals.n, totals.passed_squared, totals.n_squared, totals.product]


def test_units_of_several_variants_do_not_count() -> None:
    rows = chats(2, units=20, days=2)
    found = unit_sums(rows, mixed={"u000", "u001"})
    assert (found.units["a"], found.units["b"]) == (9, 9)
    assert vars_of(total(found, "a").totals) == pytest.approx(
        vars_of(by_unit([row for row in rows if row.unit != "u000"], "a"))
    )


def test_the_error_is_that_of_statsmodels_with_units_as_clusters() -> None:
    """A weighted mean with cluster-robust covariance, G / (G - 1), as the delta method has it."""
    rows = [row for row in chats(3, units=400, days=5, weights=(1.0, 3.0)) if row.variant == "a"]
    totals = total(unit_sums(rows), "a").totals
    names = {name: at for at, name in enumerate(sorted({row.unit for row in rows}))}
    model = sm.WLS([row.passed * 1.0 for row in rows], np.ones(len(rows)), [row.weight for row in rows])
    groups = np.array([names[row.unit] for row in rows])
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert totals.rate() == pytest.approx(fitted.params[0])
    assert totals.variance() == pytest.approx(fitted.bse[0] ** 2)


def test_the_difference_of_single_chats_is_that_of_two_proportions() -> None:
    """90 and 96 of 120, with Wald's standard error; a pass and a fail are added to the variance."""
    control, variant = (Totals.of_units([1] * k + [0] * (120 - k), [1] * 120) for k in (90, 96))
    found = difference(control, variant, Judge(), alpha=0.05)
    assert found.uncorrected.value == pytest.approx(0.05)
    wald = (0.75 * 0.25 + 0.8 * 0.2) / 119
    assert control.variance() + variant.variance() == pytest.approx(wald, rel=0.01)
    assert (found.corrected.value, found.corrected.reason) == (None, "no labelled chats")


def test_rates_have_exact_values_and_the_interval_of_one_look() -> None:
    totals = Totals.of_units([3.0, 0.0, 2.5], [3.0, 1.0, 2.5])  # weighted: 5.5 of 6.5
    uncorrected, corrected = variant_rates(totals, Judge(), alpha=0.05)
    assert uncorrected.estimate.value == pytest.approx(5.5 / 6.5)
    assert uncorrected.estimate.interval is not None
    assert corrected.estimate.reason == "no labelled chats"
    nothing, _ = variant_rates(Totals.of_units([], []), Judge(), alpha=0.05)
    assert nothing.estimate.value is None


# ---------- correction


JUDGE = Judge(Confusion(tp=180, fn=20, fp=30, tn=170))  # TPR .9, TNR .85: J = .75


def test_a_corrected_difference_is_that_of_the_corrected_rates() -> None:
    """Rogan & Gladen in each variant: (p - .15) / .75; the difference is d / .75."""
    control, variant = (Totals.of_units([1] * k + [0] * (2000 - k), [1] * 2000) for k in (1500, 1620))
    found = corrected_difference(control, variant, JUDGE, alpha=0.05)
    assert found.value == pytest.approx((0.81 - 0.75) / 0.75)
    rates = [variant_rates(one, JUDGE, alpha=0.05)[1].estimate.value for one in (control, variant)]
    assert rates == pytest.approx([0.8, 0.88])


@pytest.mark.parametrize(
    ("judge", "reason"),
    [
        (Judge(None, SEVERAL_JUDGES), SEVERAL_JUDGES),
        (Judge(Confusion(20, 0, 0, 0)), "needs labels that pass and labels that fail"),
        (Judge(Confusion(10, 10, 10, 10)), "the judge is no better than chance (TPR + TNR <= 1)"),
        (Judge(Confusion(6, 4, 4, 6)), "too few labels: the judge may be no better than chance"),
    ],
)
def test_without_known_errors_of_the_judge_there_is_a_reason_instead(judge: Judge, reason: str) -> None:
    totals = Totals.of_units([1] * 90 + [0] * 10, [1] * 100)
    assert corrected_difference(totals, totals, judge, alpha=0.05).reason == reason


def test_a_decision_follows_the_shown_interval_unless_the_sample_ratio_is_broken() -> None:
    def arm(passing: int, n: int = 1000) -> Totals:
        return Totals.of_units([1] * passing + [0] * (n - passing), [1] * n)

    def decided(variant: Totals, *, broken: bool = False) -> Decision:
        return difference(arm(800), variant, JUDGE, alpha=0.05).decision(broken=broken)

    assert decided(arm(900)) == Decision.BETTER
    assert decided(arm(700)) == Decision.WORSE
    assert decided(arm(805)) == Decision.OPEN
    assert decided(arm(10, 20)) == Decision.FEW
    assert decided(arm(900), broken=True) == Decision.BROKEN


def simulated(
    *, runs: int, days: int, daily: int, rates: tuple[float, float], seed: int, labels: int
) -> tuple[float, float]:
    """Shares of experiments whose corrected intervals, or plain ones, ever missed the true difference."""
    draw = np.random.default_rng(seed)
    tpr, tnr, missed = 0.9, 0.85, np.zeros(2)
    for _ in range(runs):
        right = draw.binomial(labels, tpr), draw.binomial(labels, tnr)
        judge = Judge(Confusion(right[0], labels - right[0], labels - right[1], right[1]))
        arms = [_arm(draw, days, daily, 1 - tnr + (tpr + tnr - 1) * rate) for rate in rates]
        points = sequence(arms[0], arms[1], judge, alpha=0.05)
        true, raw = rates[1] - rates[0], (tpr + tnr - 1) * (rates[1] - rates[0])
        intervals = [
            (point.difference.corrected.interval, point.difference.uncorrected.interval) for point in points
        ]
        missed[0] += any(not one.low <= true <= one.high for one, _ in intervals if one)
        missed[1] += any(not one.low <= raw <= one.high for _, one in intervals if one)
    return float(missed[0] / runs), float(missed[1] / runs)


def _arm(draw: np.random.Generator, days: int, daily: int, rate: float) -> dict[date, Sums]:
    """New units daily; each has one chat, or a second one with the same result a few days later."""
    rows = []
    for unit in range(days * daily):
        day, passed = unit // daily, bool(draw.random() < rate)
        again = [day + int(draw.integers(0, 5))] if draw.random() < 0.3 else []
        rows += [
            ChatResult(f"u{unit}", "a", 1, MONDAY + timedelta(days=at), passed)
            for at in (day, *again)
            if at < days
        ]
    return {place.day: one for place, one in unit_sums(rows).days.items()}


def test_corrected_intervals_keep_95_percent_under_daily_peeking() -> None:
    corrected, plain = simulated(runs=60, days=15, daily=20, rates=(0.8, 0.85), seed=11, labels=150)
    assert corrected <= 0.05
    assert plain <= 0.05


@pytest.mark.heavy
@pytest.mark.parametrize(("rates", "labels"), [((0.8, 0.8), 60), ((0.8, 0.9), 60), ((0.95, 0.9), 300)])
def test_corrected_intervals_keep_95_percent_over_60_days(rates: tuple[float, float], labels: int) -> None:
    corrected, plain = simulated(runs=150, days=60, daily=8, rates=rates, seed=5, labels=labels)
    assert corrected <= 0.05
    assert plain <= 0.05
