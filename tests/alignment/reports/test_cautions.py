"""Cautions about a criterion's statistics."""

import pytest

from alignment.comparison.core.codes import EACH_RATER
from alignment.reports.core.cautions import cautions
from alignment.reports.core.judge_side import judge_statistics
from alignment.statistics.agreement import Confusion
from tests.factories.report_data import criterion, pairs, report

GWET_2002 = Confusion(118, 5, 2, 0)
# Feinstein & Cicchetti 1990: agreement .85 in both, kappa .70 and .32.
FEINSTEIN_BALANCED = Confusion(40, 9, 6, 45)
FEINSTEIN_SKEWED = Confusion(80, 10, 5, 5)


def said_of(table: Confusion) -> tuple[str, ...]:
    found = judge_statistics(table, seed=1)
    return cautions(table, kappa=found["kappa"], balanced=found["balanced_accuracy"])


def test_kappas_paradox_is_named_with_the_rare_answer() -> None:
    (skewed,) = said_of(FEINSTEIN_SKEWED)
    assert skewed == (
        "agreement is 0.85 and AC1 0.81, but kappa 0.32: "
        "only 10 of 100 chats have a human False; read TPR and TNR"
    )
    (rare,) = said_of(GWET_2002)
    assert rare.startswith("agreement is 0.94 and AC1 0.94, but kappa −0.02: only 2 of 125 chats")


def test_balanced_classes_have_no_paradox() -> None:
    assert said_of(FEINSTEIN_BALANCED) == ()


def test_a_judge_below_chance_may_answer_the_opposite_question() -> None:
    (said,) = said_of(Confusion(10, 40, 42, 8))
    assert said == "is the answer inverted? kappa is −0.64 and its interval lies below 0"


def test_a_kappa_below_zero_by_chance_alone_is_no_inverted_answer() -> None:
    assert said_of(Confusion(14, 16, 16, 14)) == ()


def test_balanced_accuracy_alone_shows_an_inverted_answer_where_kappa_has_no_interval() -> None:
    table = Confusion(0, 15, 15, 0)
    found = judge_statistics(table, seed=1)
    without = type(found["kappa"])(found["kappa"].value, reason="none")
    (said,) = cautions(table, kappa=without, balanced=found["balanced_accuracy"])
    assert said == "is the answer inverted? balanced accuracy is 0.00 and its interval lies below 0.50"


@pytest.mark.parametrize(("table", "answer"), [((95, 0, 5, 0), "True"), ((0, 50, 0, 50), "False")])
def test_a_judge_of_one_answer_is_named(table: tuple[int, int, int, int], answer: str) -> None:
    assert said_of(Confusion(*table))[0] == f"the judge answered {answer} on all 100 chats"


@pytest.mark.parametrize("table", [Confusion(0, 0, 0, 0), Confusion(9, 0, 0, 0), Confusion(0, 4, 5, 0)])
def test_a_handful_of_chats_is_no_ground_for_a_caution(table: Confusion) -> None:
    assert said_of(table) == ()


def test_the_report_carries_them_by_criterion() -> None:
    human, judge = pairs(80, 10, 5, 5)
    unknown = "human agreement unknown: 0 of 30 needed chats have two labels"
    found = report(criterion(human, judge))["criteria"][0]["cautions"]
    assert found == [*said_of(FEINSTEIN_SKEWED), unknown]
    assert report(criterion(human, judge), against=EACH_RATER)["criteria"][0]["cautions"] == [unknown]
    assert report(criterion(human, None))["criteria"][0]["cautions"] == [unknown]
