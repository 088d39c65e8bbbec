"""Agreement of two raters, and of judge and consensus, against reference libraries and edge cases."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, matthews_corrcoef
from statsmodels.stats.inter_rater import cohens_kappa

from alignment.statistics.agreement import Confusion, brennan_prediger, cohen_kappa, gwet_ac1, scott_pi

ONE_CLASS = [[10, 0], [0, 0]]
tables = st.integers(2, 4).flatmap(
    lambda q: st.lists(st.lists(st.integers(0, 40), min_size=q, max_size=q), min_size=q, max_size=q)
)
confusions = st.builds(Confusion, *[st.integers(0, 60)] * 4)


def test_kappa_is_undefined_when_both_gave_the_same_single_answer() -> None:
    found = cohen_kappa(ONE_CLASS)
    assert (found.value, found.constant_rows, found.constant_columns) == (None, True, True)
    assert Confusion(10, 0, 0, 0).kappa is None
    assert scott_pi(ONE_CLASS) is None


def test_kappa_of_one_constant_rater_is_exactly_zero_and_says_which() -> None:
    assert cohen_kappa([[95, 0], [5, 0]]).value == 0.0
    assert cohen_kappa([[95, 0], [5, 0]]).constant_columns
    assert cohen_kappa([[7, 3], [0, 0]]).constant_rows
    assert not cohen_kappa([[7, 3], [0, 0]]).constant_columns


@pytest.mark.parametrize("table", [[[1, 2, 3], [4, 5, 6]], [[1]], [[1, -1], [0, 2]], [[1, math.nan], [0, 2]]])
def test_two_rater_statistics_refuse_what_is_no_table_of_counts(table: list[list[float]]) -> None:
    for statistic in (cohen_kappa, scott_pi, brennan_prediger, gwet_ac1):
        with pytest.raises(ValueError, match="needs"):
            statistic(table)


def test_ac1_of_one_class_is_one_without_an_interval() -> None:
    # irrCAC 0.4.4: 1.0, interval nan.
    found = gwet_ac1(ONE_CLASS)
    assert (found.estimate.value, found.estimate.interval, found.standard_error) == (1.0, None, None)


def test_ac1_of_nothing_is_undefined() -> None:
    assert gwet_ac1([[0, 0], [0, 0]]).estimate.value is None


def test_a_missing_class_leaves_its_rates_undefined() -> None:
    no_false = Confusion(tp=3, fn=1, fp=0, tn=0)
    assert (no_false.tnr, no_false.balanced_accuracy, no_false.mcc) == (None, None, None)
    assert no_false.tpr == 0.75
    empty = Confusion(0, 0, 0, 0)
    assert {empty.accuracy, empty.tpr, empty.precision, empty.f1, empty.kappa, empty.gwet_ac1} == {None}


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Confusion(1, -1, 0, 0)


@given(confusions)
def test_statistics_of_a_confusion_stay_in_range(table: Confusion) -> None:
    for name in ("accuracy", "tpr", "tnr", "balanced_accuracy", "precision", "f1"):
        value = getattr(table, name)
        assert value is None or 0 <= value <= 1, name
    for name in ("mcc", "kappa", "scott_pi", "gwet_ac1", "pabak"):
        value = getattr(table, name)
        assert value is None or -1 - 1e-12 <= value <= 1 + 1e-12, name


@given(confusions.filter(lambda table: not table.constant_human and not table.constant_judge and table.n > 0))
def test_mcc_equals_scikit_learn(table: Confusion) -> None:
    people, judge = [1, 1, 0, 0], [1, 0, 1, 0]
    assert table.mcc == pytest.approx(matthews_corrcoef(people, judge, sample_weight=table.cells), abs=1e-9)


@given(tables.filter(lambda table: np.count_nonzero(table) > 1))
def test_kappa_equals_scikit_learn_and_statsmodels(table: list[list[int]]) -> None:
    found = cohen_kappa(table)
    if found.value is None:
        return
    category = np.arange(len(table))
    rows, columns = np.repeat(category, len(table)), np.tile(category, len(table))
    weights = np.ravel(table)
    assert found.value == pytest.approx(cohen_kappa_score(rows, columns, sample_weight=weights), abs=1e-9)
    assert found.value == pytest.approx(cohens_kappa(np.array(table), return_results=False), abs=1e-9)


@given(tables)
def test_two_rater_statistics_do_not_depend_on_who_is_first(table: list[list[int]]) -> None:
    swapped = np.transpose(table)
    for statistic in (scott_pi, brennan_prediger):
        assert statistic(table) == pytest.approx(statistic(swapped))
    assert cohen_kappa(table).value == pytest.approx(cohen_kappa(swapped).value)
    assert gwet_ac1(table).estimate.value == pytest.approx(gwet_ac1(swapped).estimate.value)
