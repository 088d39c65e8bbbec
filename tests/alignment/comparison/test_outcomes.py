"""A disagreement is named by what it means for the bot: a missed failure or a false alarm."""

import re

import pytest

from alignment.comparison.core.outcomes import CELL_ANSWERS, Outcome, cell_outcome, outcome_counts, outcome_of
from alignment.reports.queries.page import cell_title
from alignment.templatetags.statistics import cell_caption, disagreement, outcome_cells


def words_in(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


BOTH_POLARITIES = pytest.mark.parametrize("passes_when", [True, False])


@BOTH_POLARITIES
def test_the_judge_who_passes_what_raters_fail_misses_a_failure(passes_when: bool) -> None:
    fails = not passes_when
    missed = outcome_of(human=fails, judge=passes_when, passes_when=passes_when)
    alarm = outcome_of(human=passes_when, judge=fails, passes_when=passes_when)
    assert (missed, missed.caption.meaning) == (Outcome.MISSED_FAILURE, "judge passed, raters failed")
    assert (alarm, alarm.caption.meaning) == (Outcome.FALSE_ALARM, "judge failed, raters passed")


@BOTH_POLARITIES
def test_every_cell_of_the_matrix_has_its_own_outcome(passes_when: bool) -> None:
    found = {cell_outcome(cell, passes_when=passes_when) for cell in CELL_ANSWERS}
    assert found == set(Outcome)


def test_the_captions_swap_where_the_criterion_passes_when_false() -> None:
    assert cell_title("fp", passes_when=True) == "missed failure: judge passed, raters failed"
    assert cell_title("fp", passes_when=False) == "false alarm: judge failed, raters passed"
    assert cell_title("tn", passes_when=False) == "both passed"
    assert "missed failure" in cell_caption("fn", False)
    assert "false alarm" in cell_caption("fn", True)


def test_a_nut_allergy_that_the_judge_lets_pass_is_a_missed_failure() -> None:
    """The question is “Did the bot ignore a safety risk?”: raters say True, the judge False."""
    assert words_in(disagreement("true", False, False)) == "missed failure"
    assert words_in(disagreement(True, False, False)) == "missed failure"


@pytest.mark.parametrize(("human", "verdict"), [("true", True), ("unresolved", True), ("true", None)])
def test_agreement_and_missing_answers_have_no_name(human: str, verdict: bool | None) -> None:
    assert disagreement(human, verdict, True) == ""


def test_printed_counts_are_by_outcome() -> None:
    table = {"tp": 1, "fn": 2, "fp": 3, "tn": 4}
    assert list(outcome_counts(table, passes_when=False).values()) == [4, 2, 3, 1]
    assert words_in(outcome_cells(table, True)) == "1 3 2 4"
