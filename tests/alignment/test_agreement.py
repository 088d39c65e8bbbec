"""Agreement of two raters, and of people with the judge, against published values and reference libraries."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, matthews_corrcoef
from statsmodels.stats.inter_rater import cohens_kappa

from alignment.core.agreement import (
    Confusion,
    brennan_prediger,
    cohen_kappa,
    gwet_ac1,
    scott_pi,
)

GWET_DIAGNOSIS = [[40, 4, 4, 17], [6, 25, 2, 13], [4, 1, 21, 12], [15, 5, 9, 45]]
GWET_ABSTRACTORS = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
FEINSTEIN_A = [[40, 9], [6, 45]]
ONE_CLASS = [[10, 0], [0, 0]]
tables = st.integers(2, 4).flatmap(
    lambda q: st.lists(st.lists(st.integers(0, 40), min_size=q, max_size=q), min_size=q, max_size=q)
)
confusions = st.builds(Confusion, *[st.integers(0, 60)] * 4)


@pytest.mark.parametrize(
    ("table", "kappa", "tolerance"),
    [
        # Gwet 2002, table 118/5/2/0; value computed from the definition.
        ([[118, 5], [2, 0]], -0.02339, 2e-5),
        # Feinstein & Cicchetti 1990, as printed in Gerstman, Epidemiology Kept Simple, Table 10.6.
        (FEINSTEIN_A, 0.70, 0.005),
        # Gerstman, Illustrative Example 10.1.
        ([[1467, 782], [1309, 16232]], 0.524, 0.0005),
        # Gwet 2014, Handbook of Inter-Rater Reliability, by irrCAC.
        (GWET_DIAGNOSIS, 0.432, 0.00051),
        # scikit-learn 1.9.1, docstring of cohen_kappa_score; negative, neutral, positive.
        ([[2, 0, 0], [0, 1, 0], [1, 0, 1]], 0.6875, 1e-9),
    ],
)
def test_cohen_kappa_equals_published_values(table: list[list[int]], kappa: float, tolerance: float) -> None:
    assert cohen_kappa(table).value == pytest.approx(kappa, abs=tolerance)


def test_kappa_is_undefined_when_both_gave_the_same_single_answer() -> None:
    found = cohen_kappa(ONE_CLASS)
    assert (found.value, found.constant_rows, found.constant_columns) == (None, True, True)
    assert Confusion(10, 0, 0, 0).kappa is None


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


def test_scott_pi_equals_published_value() -> None:
    # Gwet 2014, by irrCAC.
    assert scott_pi(GWET_DIAGNOSIS) == pytest.approx(0.43, abs=0.00051)
    assert scott_pi(ONE_CLASS) is None


def test_brennan_prediger_equals_published_values() -> None:
    # 2 po - 1 (Byrt, Bishop & Carlin 1993) on Feinstein & Cicchetti's table; Gwet 2014, by irrCAC.
    assert brennan_prediger(FEINSTEIN_A) == pytest.approx(0.7, abs=1e-9)
    assert brennan_prediger(GWET_ABSTRACTORS) == pytest.approx(0.835, abs=0.0005)


@pytest.mark.parametrize(
    ("table", "value", "error", "low", "high", "tolerance"),
    [
        # Gwet 2014, by irrCAC 0.4.4, docstring of irrCAC/table.py.
        (GWET_ABSTRACTORS, 0.84933, 0.04322, 0.76358, 0.93508, 5.1e-5),
        # Gwet 2014, by irrCAC test/unit.
        (GWET_DIAGNOSIS, 0.456, 0.043, 0.371, 0.542, 0.00051),
    ],
)
def test_ac1_of_two_raters_equals_published_values(
    table: list[list[int]], value: float, error: float, low: float, high: float, tolerance: float
) -> None:
    found = gwet_ac1(table)
    assert found.estimate.interval is not None
    measured = (
        found.estimate.value,
        found.standard_error,
        found.estimate.interval.low,
        found.estimate.interval.high,
    )
    assert measured == pytest.approx((value, error, low, high), abs=tolerance)


def test_ac1_of_one_class_is_one_without_an_interval() -> None:
    # irrCAC 0.4.4: 1.0, interval nan.
    found = gwet_ac1(ONE_CLASS)
    assert (found.estimate.value, found.estimate.interval, found.standard_error) == (1.0, None, None)


def test_ac1_of_nothing_is_undefined() -> None:
    assert gwet_ac1([[0, 0], [0, 0]]).estimate.value is None


def test_statistics_of_a_confusion_follow_their_definitions() -> None:
    # Definitions on Feinstein & Cicchetti's table B.
    table = Confusion(tp=80, fn=10, fp=5, tn=5)
    expected = {
        "accuracy": 0.85,
        "balanced_accuracy": 0.694444,
        "precision": 0.941176,
        "tpr": 0.888889,
        "tnr": 0.5,
        "f1": 0.914286,
        "mcc": 0.326732,
        "pabak": 0.7,
    }
    assert {name: getattr(table, name) for name in expected} == pytest.approx(expected, abs=2e-6)


def test_a_judge_that_always_says_true_has_no_value() -> None:
    table = Confusion(tp=95, fn=0, fp=5, tn=0)
    assert (table.accuracy, table.tpr, table.tnr, table.balanced_accuracy) == (0.95, 1.0, 0.0, 0.5)
    assert table.f1 == pytest.approx(0.9743589743589743, abs=1e-9)
    assert (table.mcc, table.kappa, table.constant_judge) == (None, 0.0, True)


@pytest.mark.parametrize(
    ("people", "judge", "statistic", "value", "tolerance"),
    [
        # scikit-learn 1.9.1, docstrings of matthews_corrcoef (-0.33) and balanced_accuracy_score.
        ([1, 1, 1, 0], [1, 0, 1, 1], "mcc", -0.33, 0.004),
        ([0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1], "balanced_accuracy", 0.625, 1e-9),
    ],
)
def test_confusion_equals_scikit_learns_examples(
    people: list[int], judge: list[int], statistic: str, value: float, tolerance: float
) -> None:
    cells = Counter(zip(people, judge, strict=True))
    table = Confusion(tp=cells[1, 1], fn=cells[1, 0], fp=cells[0, 1], tn=cells[0, 0])
    assert getattr(table, statistic) == pytest.approx(value, abs=tolerance)


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
