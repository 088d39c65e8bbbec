"""Agreement among many raters against statsmodels and the definitions."""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from alignment.statistics.agreement import (
    Confusion,
    fleiss_kappa,
    gwet_ac1_raters,
    krippendorff_alpha,
    leave_one_rater_out,
    percent_agreement,
)

item_counts = st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=25)


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=20).filter(lambda true: 0 < sum(true) < 4 * len(true))
)
def test_fleiss_kappa_equals_statsmodels_with_equal_raters(true: list[int]) -> None:
    counts = [[n, 4 - n] for n in true]
    assert fleiss_kappa(counts) == pytest.approx(statsmodels_fleiss(np.array(counts)), abs=1e-9)


def test_percent_agreement_needs_an_item_with_two_raters() -> None:
    assert percent_agreement([[1, 0], [0, 1]]) is None


def alpha_by_definition(counts: np.ndarray[Any, Any]) -> float | None:
    """1 - Do/De from the coincidence matrix, pair by pair."""
    coincidences: Counter[tuple[int, int]] = Counter()
    weights: dict[tuple[int, int], float] = {}
    for row in counts:
        values = [category for category, n in enumerate(row) for _ in range(n)]
        for first, second in itertools.permutations(values, 2):
            coincidences[first, second] += 1
            weights[first, second] = weights.get((first, second), 0.0) + 1 / (len(values) - 1)
    totals = [sum(w for (first, _), w in weights.items() if first == c) for c in range(counts.shape[1])]
    expected = sum(a * b for a, b in itertools.permutations(totals, 2))
    if round(expected, 9) == 0:
        return None
    observed = sum(w for (first, second), w in weights.items() if first != second)
    return 1 - (sum(totals) - 1) * observed / expected


@settings(max_examples=60)
@given(item_counts)
def test_alpha_equals_its_definition_pair_by_pair(rows: list[tuple[int, int, int]]) -> None:
    counts = np.array(rows)
    assert krippendorff_alpha(counts) == pytest.approx(alpha_by_definition(counts), abs=1e-9)


def ceiling_by_definition(counts: np.ndarray[Any, Any]) -> Confusion:
    """Take out each rater in turn and let the others vote."""
    found: Counter[tuple[int, int]] = Counter()
    for row in counts:
        values = [category for category, n in enumerate(row) for _ in range(n)]
        for left_out in range(len(values)):
            others = values[:left_out] + values[left_out + 1 :]
            for answer in (0, 1):
                if values[left_out] < 2 and 2 * others.count(answer) > len(others):
                    found[answer, values[left_out]] += 1
    return Confusion(found[0, 0], found[0, 1], found[1, 0], found[1, 1])


@given(item_counts)
def test_human_ceiling_from_counts_equals_leaving_out_each_rater(rows: list[tuple[int, int, int]]) -> None:
    counts = np.array(rows)
    assert leave_one_rater_out(counts) == ceiling_by_definition(counts)


def test_one_rater_has_no_ceiling() -> None:
    table = leave_one_rater_out(np.array([[1, 0, 0], [0, 1, 0]]))
    assert (table.n, table.balanced_accuracy) == (0, None)


@given(item_counts, st.integers(1, 4))
def test_weights_count_as_repeated_rows(rows: list[tuple[int, int, int]], times: int) -> None:
    counts = np.array(rows)
    weights = np.arange(len(counts)) % times + 1
    repeated = np.repeat(counts, weights, axis=0)
    for statistic in (percent_agreement, fleiss_kappa, krippendorff_alpha):
        assert statistic(counts, weights=weights) == pytest.approx(statistic(repeated), abs=1e-9)
    assert leave_one_rater_out(counts, weights=weights) == leave_one_rater_out(repeated)
    weighted, plain = gwet_ac1_raters(counts, weights=weights), gwet_ac1_raters(repeated)
    assert weighted.estimate.value == pytest.approx(plain.estimate.value, abs=1e-9)
    assert weighted.standard_error == pytest.approx(plain.standard_error, abs=1e-9)


@given(item_counts)
def test_statistics_of_many_raters_stay_in_range(rows: list[tuple[int, int, int]]) -> None:
    share = percent_agreement(rows)
    assert share is None or 0 <= share <= 1
    for value in (krippendorff_alpha(rows), gwet_ac1_raters(rows).estimate.value):
        assert value is None or -1.000001 <= value <= 1.000001
    # Items with one rater count in Fleiss's chance agreement only, so the statistic may fall below -1.
    fleiss = fleiss_kappa(rows)
    assert fleiss is None or (math.isfinite(fleiss) and fleiss <= 1.000001)


@pytest.mark.parametrize("counts", [[1, 2], [[1], [2]], [[1, -1]], [[1, math.inf]]])
def test_many_rater_statistics_refuse_what_is_no_matrix_of_counts(counts: Any) -> None:
    for statistic in (percent_agreement, fleiss_kappa, krippendorff_alpha, gwet_ac1_raters):
        with pytest.raises(ValueError, match="needs"):
            statistic(counts)


def test_ac1_of_many_raters_with_one_class_is_one_without_an_interval() -> None:
    found = gwet_ac1_raters([[3, 0], [2, 0]])
    assert (found.estimate.value, found.estimate.interval) == (1.0, None)


def test_ac1_needs_an_item_with_two_raters() -> None:
    assert gwet_ac1_raters([[1, 0], [0, 1]]).estimate.value is None


@pytest.mark.parametrize("weights", [[1], [1, 0], [1, -2]])
def test_a_weight_for_each_row_must_be_positive(weights: list[int]) -> None:
    with pytest.raises(ValueError, match="positive weight"):
        percent_agreement([[2, 0], [1, 1]], weights=weights)
