"""A chat's session score: share of applicable criteria that pass, 0 after a failed critical one."""

from typing import Any

import numpy as np
import pytest

from alignment.comparison.core.codes import CriterionSpec, JudgeCode
from alignment.session_scores.core import SessionScore, one_session_score, session_scores
from tests.factories.report_data import NA, UNLABELLED, UNRESOLVED, F, T, spec


def score(codes: list[int], *specs: CriterionSpec, **setting: Any) -> SessionScore:
    return one_session_score(codes, specs or [spec(f"c{n}") for n in range(len(codes))], **setting)


def test_the_score_is_the_share_of_applicable_criteria_that_pass() -> None:
    assert score([T, T, F, T]).value == 0.75


def test_an_answer_passes_if_it_is_the_passing_answer() -> None:
    polite, wrong = spec("polite"), spec("wrong_fact", passes_when=False)
    assert score([T, F], polite, wrong).value == 1.0
    assert score([F, T], polite, wrong).value == 0.0


def test_not_applicable_counts_neither_way() -> None:
    found = score([T, NA, F])
    assert (found.value, found.applicable, found.partial) == (0.5, 2, False)


def test_a_failed_critical_criterion_makes_the_score_0() -> None:
    critical = spec("leaked", critical=True, passes_when=False)
    found = score([T, T, T], spec("a"), spec("b"), critical)
    assert (found.value, found.passed, found.critical_failed) == (0.0, 2, True)


@pytest.mark.parametrize("code", [NA, UNRESOLVED, UNLABELLED, JudgeCode.REFUSED])
def test_a_critical_criterion_that_did_not_fail_leaves_the_score(code: int) -> None:
    assert score([T, code], spec("a"), spec("b", critical=True)).value == 1.0


@pytest.mark.parametrize("code", [code for code in JudgeCode if code > JudgeCode.NA])
def test_a_missing_verdict_makes_the_score_partial(code: JudgeCode) -> None:
    found = score([T, F, code])
    assert (found.value, found.missing, found.partial) == (0.5, 1, True)


@pytest.mark.parametrize("codes", [[], [NA, NA], [UNLABELLED, NA], [JudgeCode.NONE]])
def test_without_an_applicable_criterion_there_is_no_score(codes: list[int]) -> None:
    found = score(codes)
    assert (found.value, found.partial) == (None, False)


def test_subjective_criteria_count_only_if_the_workspace_says_so() -> None:
    both = spec("polite"), spec("friendly", tier="subjective", critical=True)
    assert score([T, F], *both).value == 1.0
    assert score([T, UNLABELLED], *both).partial is False
    assert score([T, F], *both, subjective=True).value == 0.0


def test_many_chats_are_scored_like_each_alone() -> None:
    specs = [spec("a"), spec("b", passes_when=False), spec("c", critical=True), spec("d", tier="subjective")]
    codes = np.random.default_rng(1).integers(0, 9, size=(4, 300)).astype(np.int8)
    many = session_scores(codes, specs)
    alone = [one_session_score(codes[:, chat].tolist(), specs) for chat in range(300)]
    assert [many.at(chat) for chat in range(300)] == alone
    assert [None if np.isnan(value) else value for value in many.values] == [one.value for one in alone]
    assert many.partial.tolist() == [one.partial for one in alone]
