"""Intervals hold what was planted: a few cells of `python -m bench coverage`, at a fixed seed."""

import numpy as np
import pytest

from alignment.reports.core.judge_side import NAMES
from alignment.reports.core.pass_rates import Method
from alignment.statistics.agreement import Confusion
from bench._clustered_rates import ClusteredCell
from bench.coverage import Cell, League, covered, precision_covered

CELLS = (
    Cell(30, 30, 0.97, 0.97, drawn=True),
    Cell(30, 200, 0.80, 0.90, drawn=True),
    Cell(200, 30, 0.90, 0.70, drawn=True),
)
PEOPLE = ("people's alpha", "people's AC1", "human ceiling", "human ceiling of accuracy")
MANY = (*PEOPLE, "accuracy of 3 criteria", "balanced_accuracy of 3 criteria")
LEAGUES = [
    League(30, 10, 0.7, (0.5,), (0.9, 0.85), (0.9, 0.85)),
    League(60, 4, 0.7, (0.8, 0.2), (0.95, 0.8), (0.85, 0.8)),
]


@pytest.fixture(scope="module")
def shares() -> list[dict[str, float]]:
    return [covered(cell, sets=150, sets_of_many=30) for cell in CELLS]


@pytest.mark.heavy
@pytest.mark.parametrize(
    "name",
    [
        *NAMES,
        *("pass rate, people", "pass rate, judge"),
        *("pass rate, corrected, 1,000 more", "pass rate, corrected, at random, 1,000 more"),
    ],
)
def test_nineteen_of_twenty_hold_what_was_planted(shares: list[dict[str, float]], name: str) -> None:
    found = [one[name] for one in shares]
    assert np.mean(found) > 0.915  # two standard errors of 450 sets below .94
    assert min(found) > 0.85  # two standard errors of 150 sets below .90


@pytest.mark.heavy
@pytest.mark.parametrize("name", MANY)
def test_so_do_those_from_many_answers_a_chat(shares: list[dict[str, float]], name: str) -> None:
    assert np.mean([one[name] for one in shares]) > 0.90


@pytest.mark.heavy
@pytest.mark.parametrize("league", LEAGUES)
def test_intervals_of_a_league_of_few_chats_that_are_hard_on_every_criterion_hold(league: League) -> None:
    found = league.covered(sets=300)
    assert np.mean(list(found.values())) > 0.93
    assert min(found.values()) > 0.875  # two standard errors of 300 sets below .90 are .865


def test_an_interval_from_a_table_without_an_error_still_holds_a_judge_that_errs() -> None:
    # At 30 and 30 with rates of .97 one table of six holds no error.
    found = covered(Cell(30, 30, 0.97, 0.97, drawn=False), sets=300, sets_of_many=1)
    assert min(found[name] for name in ("f1", "mcc", "kappa", "gwet_ac1")) > 0.9


@pytest.mark.parametrize("cell", [(30, 0.9, 0.95, 0.95), (30, 0.95, 0.97, 0.95), (60, 0.95, 0.95, 0.95)])
def test_a_precision_close_to_one_is_held_on_few_chats(cell: tuple[int, float, float, float]) -> None:
    assert precision_covered(*cell) > 0.93


@pytest.mark.parametrize("method", [Method.ROGAN_GLADEN, Method.PPI])
def test_a_corrected_rate_of_clusters_is_held_where_independent_chats_would_mislead(method: Method) -> None:
    cell = ClusteredCell(40, 10, alike=0.7, labelled=0.4, whole=True)
    assert cell.covered(method, sets=150) > 0.9
    assert cell.covered(method, sets=150, together=False) < 0.8


def test_the_planted_table_is_the_expected_one() -> None:
    assert Cell(30, 200, 0.97, 0.70, drawn=True).population == Confusion(2910, 90, 6000, 14000)
