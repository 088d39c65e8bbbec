"""Intervals against SciPy, statsmodels, and a resampling of single chats."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from alignment.statistics.agreement import formulas, krippendorff_alpha
from alignment.statistics.agreement.many_raters import alpha_of_sums, alpha_parts
from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import (
    Resamples,
    bootstrap_estimate,
    clopper_pearson,
    digits,
    half_of_each,
    modified_wilson,
    mover_mean,
    packed_patterns,
    patterns,
    proportion,
    resample_chats,
    wilson,
)
from bench._thin_criteria import THIN, thin_covered

successes_of_n = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(successes_of_n)
def test_intervals_of_a_share_equal_scipy_and_statsmodels(case: tuple[int, int]) -> None:
    successes, n = case
    for ours, scipys, statsmodels in (
        (wilson(successes, n), "wilson", "wilson"),
        (clopper_pearson(successes, n), "exact", "beta"),
    ):
        assert ours is not None
        theirs = binomtest(successes, n).proportion_ci(method=scipys)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
        other = proportion_confint(successes, n, method=statsmodels)
        assert (ours.low, ours.high) == pytest.approx(other, abs=1e-9)


@given(successes_of_n)
def test_intervals_of_a_share_hold_it_and_stay_in_range(case: tuple[int, int]) -> None:
    successes, n = case
    for found in (wilson(successes, n), modified_wilson(successes, n), clopper_pearson(successes, n)):
        assert found is not None
        assert 0 <= found.low <= successes / n <= found.high <= 1


def test_few_successes_or_failures_have_a_poisson_bound() -> None:
    # Chi-squared with 2 degrees of freedom is exponential: half its 5% quantile is -ln(0.95).
    # Of 4 and 6, as tabled (NIST/SEMATECH e-Handbook, 1.3.6.7.4): 0.711 and 1.635.
    quantiles = {1: -math.log(0.95), 2: 0.711 / 2, 3: 1.635 / 2}
    for n, few in ((26, 2), (50, 2), (51, 3), (200, 3)):
        for count in range(5):
            below, above = modified_wilson(count, n), modified_wilson(n - count, n)
            plain = wilson(count, n)
            assert below and above and plain
            assert (above.low, above.high) == pytest.approx((1 - below.high, 1 - below.low))
            assert below.high == plain.high
            expected = quantiles[count] / n if 0 < count <= few else plain.low
            assert below.low == pytest.approx(expected, abs=0.0006 / n)


def test_a_share_of_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None
    assert modified_wilson(0, 0) is None
    assert clopper_pearson(0, 0) is None
    assert proportion(0, 0, reason="no chat") == Estimate(None, reason="no chat")


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (0, -1)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson(successes, n)
    with pytest.raises(ValueError, match="successes"):
        clopper_pearson(successes, n)


def test_mover_joins_the_distances_to_the_bounds() -> None:
    found = mover_mean(Estimate(0.9, Interval(0.6, 1.0)), Estimate(0.7, Interval(0.3, 0.8)))
    assert found.value == pytest.approx(0.8)
    assert found.interval is not None
    # Distances below .3 and .4, so .5 / 2; above .1 and .1.
    assert found.interval.low == pytest.approx(0.8 - 0.25)
    assert found.interval.high == pytest.approx(0.8 + 0.5 * 0.02**0.5)


def test_mover_is_undefined_where_a_share_is_and_keeps_its_reason() -> None:
    assert mover_mean(proportion(3, 4, reason=""), Estimate(None, reason="no False")).reason == "no False"


def test_mover_covers_the_planted_balanced_accuracy() -> None:
    rng = np.random.default_rng(5)
    true, false = rng.binomial(90, 0.95, size=1500), rng.binomial(15, 0.75, size=1500)
    held = 0
    for tp, tn in zip(true.tolist(), false.tolist(), strict=True):
        interval = mover_mean(proportion(tp, 90, reason=""), proportion(tn, 15, reason="")).interval
        assert interval is not None
        held += interval.low <= 0.85 <= interval.high
    assert 0.93 <= held / 1500 <= 0.99


def test_patterns_count_equal_rows_and_leave_out_empty_ones() -> None:
    rows = np.array([[0, 2], [1, 0], [0, 2], [0, 0], [0, 2], [3, 1]])
    found = patterns(rows)
    assert found.rows.tolist()[0] == [0, 2]
    counted = dict(zip(map(tuple, found.rows.tolist()), found.chats.tolist(), strict=True))
    assert counted == {(0, 2): 3, (1, 0): 1, (3, 1): 1}


def test_patterns_that_do_not_fit_one_number_are_found_as_well() -> None:
    rows = np.array([[2_000_000, 0, 5], [2_000_000, 0, 5], [1, 0, 0], [0, 3_000_000, 1]])
    found = patterns(rows)
    assert found.rows.tolist()[0] == [2_000_000, 0, 5]
    assert sorted(found.chats.tolist()) == [1, 1, 2]


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=30))
def test_packed_patterns_equal_patterns(rows: list[tuple[int, int, int]]) -> None:
    matrix = np.array(rows)
    packed = packed_patterns(matrix @ digits(5, 3), base=5, width=3)
    plain = patterns(matrix)
    assert set(zip(map(tuple, packed.rows.tolist()), packed.chats.tolist(), strict=True)) == set(
        zip(map(tuple, plain.rows.tolist()), plain.chats.tolist(), strict=True)
    )


def test_negative_counts_have_no_pattern() -> None:
    with pytest.raises(ValueError, match="not negative"):
        patterns(np.array([[1, -1]]))


def drawn_one_by_one(rows: np.ndarray[Any, Any], *, resamples: int) -> np.ndarray[Any, Any]:
    """The textbook bootstrap: indices of chats with replacement, then sums."""
    rng = np.random.default_rng(77)
    chosen = rng.integers(len(rows), size=(resamples, len(rows)))
    sums: np.ndarray[Any, Any] = rows[chosen].sum(axis=1)
    return sums


@pytest.fixture
def chat_cells() -> np.ndarray[Any, Any]:
    """120 chats x (tp, fn, fp, tn) of four criteria, whose errors come together."""
    rng = np.random.default_rng(3)
    clumsy = rng.random(120) < 0.2
    rows = np.zeros((120, 4), dtype=np.int64)
    for _ in range(4):
        people = rng.random(120) < 0.7
        judge = people ^ (rng.random(120) < np.where(clumsy, 0.5, 0.05))
        rows[np.arange(120), 2 * ~people + ~judge] += 1
    return rows


@pytest.mark.parametrize(
    "statistic",
    [
        formulas.accuracy,
        formulas.balanced_accuracy,
        formulas.f1,
        formulas.mcc,
        lambda sums: formulas.cohen_kappa(formulas.tables(sums)),
        lambda sums: formulas.gwet_ac1(formulas.tables(sums)),
    ],
)
def test_resampling_patterns_equals_resampling_chats(chat_cells: Any, statistic: Any) -> None:
    distinct = patterns(chat_cells)
    sums = resample_chats(distinct.rows, distinct.chats, seed=1, resamples=6000).sums
    assert sums is not None
    ours, naive = statistic(sums), statistic(drawn_one_by_one(chat_cells, resamples=6000))
    assert ours.std() == pytest.approx(naive.std(), rel=0.06)
    # Monte-Carlo error of such a quantile is about .04 standard deviations.
    quantiles = [0.025, 0.5, 0.975]
    assert np.quantile(ours, quantiles) == pytest.approx(np.quantile(naive, quantiles), abs=0.2 * naive.std())


def test_resampling_patterns_equals_resampling_units_for_alpha() -> None:
    counts = np.random.default_rng(9).multinomial(3, [0.6, 0.3, 0.1], size=60)
    distinct = patterns(counts)
    sums = resample_chats(alpha_parts(distinct.rows), distinct.chats, seed=1, resamples=5000).sums
    assert sums is not None
    ours = alpha_of_sums(sums)
    chosen = np.random.default_rng(4).integers(60, size=(1500, 60))
    naive = np.array([krippendorff_alpha(counts[units]) for units in chosen])
    assert ours.mean() == pytest.approx(naive.mean(), abs=0.2 * naive.std())
    assert ours.std() == pytest.approx(naive.std(), rel=0.1)


def test_fewer_than_ten_chats_are_not_resampled() -> None:
    refused = resample_chats(np.eye(2), np.array([5, 4]), seed=1)
    assert refused.sums is None
    assert refused.reason == "too few chats to resample: 9 of 10"
    found = bootstrap_estimate(0.5, formulas.accuracy, refused, reason="")
    assert (found.value, found.interval, found.reason) == (0.5, None, refused.reason)
    assert resample_chats(np.eye(2), np.array([5, 5]), seed=1).sums is not None


def test_every_replicate_resamples_as_many_chats_as_there_are() -> None:
    sums = resample_chats(np.eye(3), np.array([20, 5, 1]), seed=1, resamples=50).sums
    assert sums is not None
    assert set(sums.sum(axis=1).tolist()) == {26.0}


def test_the_seed_fixes_the_interval() -> None:
    chats = np.array([30, 5, 6, 20])
    first, again, other = (
        bootstrap_estimate(0.8, formulas.accuracy, resample_chats(np.eye(4), chats, seed=seed), reason="")
        for seed in (11, 11, 12)
    )
    assert first == again
    assert first != other


def test_undefined_replicates_are_dropped_and_counted() -> None:
    # One human False among 12 chats: about (11/12)^12 = 35% of the replicates have none.
    resampled = resample_chats(np.eye(4)[[0, 3]], np.array([11, 1]), seed=1)
    found = bootstrap_estimate(1.0, formulas.tnr, resampled, reason="")
    assert found.dropped / 2000 == pytest.approx((11 / 12) ** 12, abs=0.05)
    assert found.as_json()["dropped"] == found.dropped


def test_an_interval_is_refused_when_every_replicate_is_undefined() -> None:
    resampled = resample_chats(np.eye(4)[[0]], np.array([12]), seed=1)
    found = bootstrap_estimate(0.5, formulas.tnr, resampled, reason="")
    assert (found.interval, found.dropped, found.reason) == (None, 2000, "undefined in every resample")


def test_an_interval_without_width_says_so() -> None:
    resampled = resample_chats(np.eye(4)[[0, 3]], np.array([20, 10]), seed=1)
    found = bootstrap_estimate(1.0, formulas.accuracy, resampled, reason="")
    assert found.interval == Interval(1.0, 1.0)
    assert found.flag == "all resamples are equal: the interval has no width"


def test_a_pseudo_chat_makes_the_unseen_rare_and_not_impossible() -> None:
    chats = np.array([30, 0, 0, 30])
    resampled = resample_chats(np.eye(4), chats, seed=1, pseudo=half_of_each()).sums
    assert resampled is not None
    assert (resampled.sum(axis=1) == 60).all()
    assert resampled.mean(axis=0) == pytest.approx(60 * (chats + 0.5) / 62, rel=0.1)
    found = bootstrap_estimate(1.0, formulas.accuracy, Resamples(resampled), reason="")
    assert found.interval is not None
    assert found.flag == ""
    assert 0.9 < found.interval.low < 1.0 == found.interval.high


def test_pseudo_chats_do_not_count_as_chats() -> None:
    assert resample_chats(np.eye(4), np.array([9, 0, 0, 0]), seed=1, pseudo=half_of_each()).sums is None


def test_an_interval_is_stretched_to_the_value_it_belongs_to() -> None:
    off = bootstrap_estimate(0.9, lambda sums: sums[:, 0], Resamples(np.full((50, 1), 0.5)), reason="")
    assert off.interval == Interval(0.5, 0.9)


def test_an_undefined_value_has_no_interval() -> None:
    resampled = Resamples(np.ones((5, 4)))
    assert bootstrap_estimate(None, formulas.accuracy, resampled, reason="no chat") == Estimate(
        None, reason="no chat"
    )


@pytest.mark.parametrize("cell", THIN)
def test_two_right_answers_of_one_criterion_are_no_certainty_in_a_mean_over_criteria(
    cell: tuple[tuple[int, ...], tuple[float, ...]],
) -> None:
    assert thin_covered(*cell, sets=200) >= 0.88
