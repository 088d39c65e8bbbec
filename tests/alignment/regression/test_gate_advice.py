"""What decides an inconclusive test: labels only where they can, and missing verdicts first."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from alignment.comparison.core.codes import HumanCode, JudgeCode
from alignment.regression.core import (
    Decision,
    Gate,
    GatePolicy,
    PairedVerdicts,
    confirm,
    count_evidence,
    decide,
)
from tests.factories.gate_verdicts import verdicts

POLICY = GatePolicy()


def gate(*criteria: PairedVerdicts) -> Decision:
    return decide(count_evidence(criteria), policy=POLICY)


def answered(
    chats: int, *, champion: Sequence[int] = (), candidate: Sequence[int] = (), wrong: int = 0
) -> PairedVerdicts:
    """Right verdicts on every chat, but for the codes of each judge on the first or the last ones.

    champion : codes on the first chats, candidate : codes on the last. wrong : first chats on which the
    champion errs.
    """
    human = (np.arange(chats) % 2).astype(np.int8)
    old, new = human.copy(), human.copy()
    old[:wrong] = 1 - old[:wrong]
    old[: len(champion)] = champion
    new[chats - len(candidate) :] = candidate
    return PairedVerdicts("polite", "simple", human, old, new)


def test_labels_are_the_advice_where_labels_decide() -> None:
    decision = gate(verdicts(right=10))
    assert (decision.gate, decision.more_labels) == (Gate.INCONCLUSIVE, 90)
    assert decision.advice == "at these rates about 90 more labelled chats are needed for the gate"


def test_labels_that_cannot_measure_a_judge_release_nothing_and_end_the_advice_on_labels() -> None:
    quarrel = replace(answered(400), problem="raters disagree: the upper bound of their own accuracy is 0.60")
    decision = gate(quarrel)
    assert (decision.gate, decision.more_labels) == (Gate.INCONCLUSIVE, None)
    assert decision.reasons == (f"polite: {quarrel.problem}",)
    assert "until raters agree" in decision.advice
    assert gate(replace(quarrel, tier="subjective")).gate is Gate.PASS


@pytest.mark.parametrize("state", [JudgeCode.CUT_OFF, JudgeCode.UNPARSED, JudgeCode.FAILED, JudgeCode.NONE])
def test_a_test_without_verdicts_names_them_first_and_advises_no_labels(state: JudgeCode) -> None:
    every = [state] * 10
    decision = gate(answered(10, champion=every, candidate=every))
    word = {"CUT_OFF": "cut off", "UNPARSED": "unreadable", "FAILED": "failed", "NONE": "missing"}[state.name]
    remedy = {
        "CUT_OFF": "more labels do not help: raise the room for answers or change the model, then test again",
        "UNPARSED": "more labels do not help: change the model or the formatter model, then test again",
    }
    missing = "more labels do not help while verdicts are missing: remove the cause, then test again"
    assert decision.gate is Gate.INCONCLUSIVE
    assert decision.reasons == (
        f"polite: the candidate has no verdict on 10 of 10 labelled chats (10 {word}), the champion on 10"
        f" (10 {word})",
    )
    assert decision.more_labels is None
    assert decision.advice == remedy.get(state.name, missing)


def test_a_champion_without_verdicts_ends_the_advice_on_labels_too() -> None:
    decision = gate(answered(60, champion=[JudgeCode.REFUSED] * 9))
    assert decision.reasons[0] == "polite: the champion has no verdict on 9 of 60 labelled chats (9 refused)"
    assert decision.more_labels is None
    assert "labelled chats; 100 are needed" in decision.reasons[1]


def test_a_fail_by_cut_off_verdicts_names_them_first() -> None:
    decision = gate(answered(200, candidate=[JudgeCode.CUT_OFF] * 24))
    assert decision.gate is Gate.FAIL
    assert decision.reasons[0].startswith("polite: the candidate has no verdict on 24 of 200 labelled chats")
    assert decision.reasons[1].startswith("polite got worse: 24 broken")


def test_a_few_unread_answers_are_named_first_where_they_are_most_of_what_broke() -> None:
    decision = gate(answered(240, candidate=[JudgeCode.CUT_OFF] * 9))
    assert decision.gate is Gate.FAIL
    assert decision.reasons[0].startswith("polite: the candidate has no verdict on 9 of 240 labelled chats")


def test_a_sibling_whose_labels_cannot_measure_a_judge_does_not_block_a_revision() -> None:
    sibling = replace(verdicts(right=200), key="grounded", revised=False, problem="raters disagree: …")
    decision = gate(verdicts(fixed=10, right=190), sibling)
    assert decision.gate is Gate.PASS
    assert decision.cautions == ("grounded: raters disagree: …; this test does not change its prompt",)


def test_a_candidate_with_more_missing_verdicts_than_its_champion_does_not_pass() -> None:
    """Better on the chats answered, and accuracy rises; 24 of 200 have no verdict."""
    decision = gate(answered(200, wrong=60, candidate=[JudgeCode.CUT_OFF] * 24))
    assert decision.gate is Gate.INCONCLUSIVE
    assert len(decision.reasons) == 1
    assert decision.more_labels is None


def test_a_candidate_that_mends_missing_verdicts_passes_with_a_caution() -> None:
    decision = gate(
        answered(
            200,
            champion=[JudgeCode.UNPARSED] * 30,
            candidate=[JudgeCode.TOO_LONG] * 2,
        )
    )
    assert decision.gate is Gate.PASS
    assert decision.cautions == (
        "polite: the candidate has no verdict on 2 of 200 labelled chats (2 too long), the champion on 30"
        " (30 unreadable)",
    )


def test_two_judges_that_answer_nothing_do_not_pass() -> None:
    every = [JudgeCode.CUT_OFF] * 400
    assert gate(answered(400, champion=every, candidate=every)).gate is Gate.INCONCLUSIVE


def test_not_applicable_is_a_verdict() -> None:
    decision = gate(answered(200, candidate=[JudgeCode.NA] * 2))
    assert decision.cautions == ()


def test_where_the_ceiling_gap_decides_no_labels_are_advised() -> None:
    decision = gate(verdicts(fixed=30, broken=41, right=260, wrong=69, ceiling=0.95))
    assert "below the human ceiling" in decision.reasons[0]
    assert decision.more_labels is None
    assert decision.advice == (
        "more labels do not decide: the candidate must reach the champion's rates or keep the floor and the"
        " gap to the human ceiling"
    )


def test_where_one_human_answer_gained_and_the_other_lost_no_labels_are_advised() -> None:
    human = np.repeat([0, 1], [300, 40]).astype(np.int8)
    old, new = human.copy(), human.copy()
    old[:9], new[300:305] = 1, 0
    decision = gate(PairedVerdicts("polite", "simple", human, old, new))
    assert decision.reasons == (
        "polite may have got worse on human False: 5 broken, 0 fixed of 40 (p = 0.016)",
    )
    assert decision.more_labels is None
    assert decision.advice == "more labels do not decide at these rates: read the broken chats"


def test_numbers_of_labels_that_nobody_gives_are_not_advised() -> None:
    """A loss of 0.6 points on human False would take thousands of chats to be found."""
    human = np.repeat([0, 1], [420, 80]).astype(np.int8)
    old, new = human.copy(), human.copy()
    old[:5], new[10:12], new[420:426] = 1, 1, 0
    decision = gate(PairedVerdicts("polite", "simple", human, old, new))
    assert decision.gate is Gate.INCONCLUSIVE
    assert decision.more_labels is None


def test_a_decided_test_gives_no_advice() -> None:
    assert gate(verdicts(right=200)).advice == gate(verdicts(broken=30, right=170)).advice == ""


def test_no_labelled_chat_asks_for_labels() -> None:
    unlabelled = np.full(3, HumanCode.UNLABELLED, dtype=np.int8)
    nobody = PairedVerdicts(
        "polite", "simple", unlabelled, np.zeros_like(unlabelled), np.zeros_like(unlabelled)
    )
    assert gate(nobody).advice == "about 100 more labelled chats are needed for the gate"
    assert gate(nobody).more_labels == 100


def test_a_fail_that_was_not_confirmed_advises_another_test_where_labels_do_not_decide() -> None:
    first = Decision(Gate.FAIL, ("polite got worse",))
    assert confirm(first, gate(verdicts(right=200))).advice == "the candidate's two runs differ: test again"
