"""The report's `session_score`: judge against raters over whole chats."""

from typing import Any

import numpy as np
import pytest

from alignment.comparison.core.codes import CriterionData, JudgeCode, ReportData
from alignment.session_scores.core import EACH_RATER, NO_RUN, score_agreement
from alignment.statistics.paired_scores import NO_PAIR
from tests.factories.report_data import NA, UNLABELLED, UNRESOLVED, F, T, criterion, spec


def agreement(*criteria: CriterionData, subjective: bool = False, **fields: Any) -> dict[str, Any]:
    chat_ids = [f"chat-{number}" for number in range(len(criteria[0].human) if criteria else 0)]
    return score_agreement(ReportData(chat_ids, criteria, **fields), subjective=subjective, seed=1)


# Four chats, three criteria; a failed critical one makes a score 0.
POLITE = criterion([T, F, T, T], [T, T, F, T], about=spec("polite"))
LEAKED = criterion([F, F, T, F], [F, F, F, T], about=spec("leaked", passes_when=False, critical=True))
SIMPLE = criterion([T, T, T, F], [T, T, T, T], about=spec("simple"))


def test_means_and_difference_are_those_computed_by_hand() -> None:
    # By hand: human 1, 2/3, 0, 2/3; judge 1, 1, 2/3, 0.
    body = agreement(POLITE, LEAKED, SIMPLE)
    assert body["human"]["value"] == pytest.approx(7 / 12)
    assert body["judge"]["value"] == pytest.approx(8 / 12)
    assert body["difference"]["value"] == pytest.approx(1 / 12)
    # Deviations in twelfths: human 5 1 -7 1, judge 4 4 0 -8; 16 / sqrt(76 * 96).
    assert body["correlation"]["value"] == pytest.approx(16 / np.sqrt(76 * 96))
    # Ranks: human 4 2.5 1 2.5, judge 3.5 3.5 2 1: 2.25 / sqrt(4.5 * 4.5).
    assert body["rank_correlation"] == pytest.approx(2.25 / 4.5)
    assert (body["n"], body["partial"], body["criteria"]) == (4, 0, 3)
    assert body["pairs"] == [[0.0, 0.7, 1], [0.7, 0.0, 1], [0.7, 1.0, 1], [1.0, 1.0, 1]]


def test_chats_with_one_score_only_are_not_compared() -> None:
    body = agreement(criterion([T, UNLABELLED, T, NA], [T, T, JudgeCode.UNPARSED, T]))
    assert (body["n"], body["human"]["value"], body["judge"]["value"]) == (1, 1.0, 1.0)


def test_chats_with_a_missing_answer_on_either_side_are_counted_as_partial() -> None:
    other = criterion([T, UNRESOLVED, T, NA], [T, T, JudgeCode.REFUSED, T], about=spec("other"))
    body = agreement(criterion([T] * 4, [T] * 4), other)
    assert (body["n"], body["partial"]) == (4, 2)


def test_a_chats_scores_count_only_the_criteria_that_both_answered() -> None:
    # Raters labelled the first criterion only, and agree there with a judge that fails the other.
    unlabelled = criterion([UNLABELLED] * 4, [F] * 4, about=spec("other"))
    body = agreement(criterion([T] * 4, [T] * 4), unlabelled)
    assert (body["judge"]["value"], body["difference"]["value"], body["partial"]) == (1.0, 0.0, 4)


def test_without_a_pair_everything_is_undefined_with_its_reason() -> None:
    body = agreement(criterion([UNLABELLED], [T]))
    assert body["difference"] == {"value": None, "low": None, "high": None}
    assert (body["n"], body["undefined"]["difference"]) == (0, NO_PAIR)


def test_a_report_without_criteria_has_no_score() -> None:
    assert agreement()["n"] == 0


def test_without_a_run_only_the_human_score_is_there() -> None:
    body = agreement(criterion([T, F, UNLABELLED], None), criterion([T, UNLABELLED, NA], None))
    assert (body["human"]["value"], body["n"], body["partial"]) == (0.5, 2, 1)
    assert (body["judge"]["value"], body["undefined"]["judge"]) == (None, NO_RUN)


def test_against_each_rater_no_chat_has_a_single_human_score() -> None:
    body = agreement(POLITE, against="each-rater")
    assert (body["n"], body["undefined"]["human"]) == (0, EACH_RATER)


def test_subjective_criteria_are_left_out_by_name_or_counted() -> None:
    tone = criterion([F] * 4, [T] * 4, about=spec("tone", tier="subjective"))
    left_out = agreement(SIMPLE, tone)
    assert (left_out["criteria"], left_out["criteria_left_out"]) == (1, ["tone"])
    assert (left_out["subjective_counted"], left_out["difference"]["value"]) == (False, 0.25)
    counted = agreement(SIMPLE, tone, subjective=True)
    assert (counted["criteria_left_out"], counted["subjective_counted"]) == ([], True)
    assert counted["difference"]["value"] == pytest.approx(0.625)


def test_ten_chats_or_clusters_give_intervals() -> None:
    human, judge = [T, F] * 10, [T, T, F, F] * 5
    alone = agreement(criterion(human, judge))
    assert alone["difference"]["low"] < 0 < alone["difference"]["high"]
    assert -1 <= alone["correlation"]["low"] < alone["correlation"]["high"] <= 1
    together = agreement(criterion(human, judge), clusters=np.arange(20) // 4)
    assert together["difference"]["low"] is None
    assert together["undefined"]["difference.interval"] == "too few chats to resample: 5 of 10"
