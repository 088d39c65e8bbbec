"""The gate's rules, one by one: what fails, what passes, what stays open and why."""

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
from common.problems import FieldProblem
from tests.factories.gate_verdicts import verdicts

POLICY = GatePolicy()


def gate(*criteria: PairedVerdicts, policy: GatePolicy = POLICY) -> Decision:
    return decide(count_evidence(criteria), policy=policy)


def family(first: PairedVerdicts, *, others: int = 4) -> tuple[PairedVerdicts, ...]:
    """The criterion beside others of which nothing changed."""
    chats = len(first.human)
    return (first, *(verdicts(right=chats, key=f"other_{n}") for n in range(others)))


def test_a_criterion_alone_that_got_worse_fails() -> None:
    decision = gate(verdicts(fixed=3, broken=14, right=183))
    assert decision.gate is Gate.FAIL
    assert decision.reasons == ("polite got worse: 14 broken, 3 fixed of 200 chats (p = 0.004, limit 0.05)",)


def test_fewer_than_a_hundred_chats_cannot_pass_alone_but_can_fail() -> None:
    few = gate(verdicts(right=99))
    assert (few.gate, few.reasons) == (
        Gate.INCONCLUSIVE,
        ("polite: 99 labelled chats; 100 are needed to pass alone",),
    )
    assert gate(verdicts(broken=10, right=60)).gate is Gate.FAIL


@pytest.mark.parametrize("chats", [4, 31])
def test_few_chats_do_not_pass_together_just_because_no_verdict_changed(chats: int) -> None:
    """Without a changed verdict the mean has no error, so its bound is 0 on four chats, too."""
    few = gate(*family(verdicts(right=chats)))
    assert (few.gate, few.reasons) == (
        Gate.INCONCLUSIVE,
        (f"polite: {chats} labelled chats; 32 are needed to pass",),
    )
    assert few.more_labels == 32 - chats
    assert gate(*family(verdicts(right=32))).gate is Gate.PASS


def test_the_chats_of_the_criteria_that_the_test_changes_count() -> None:
    changed = verdicts(right=100)
    changed.human[10:] = HumanCode.UNLABELLED
    shared = replace(verdicts(right=100, key="other"), revised=False)
    assert gate(changed, shared).reasons == ("polite: 10 labelled chats; 32 are needed to pass",)


def test_one_bad_criterion_of_many_fails_after_holm() -> None:
    worse = verdicts(fixed=2, broken=16, right=182)
    assert gate(*family(worse)).gate is Gate.FAIL
    assert (
        gate(*family(worse))
        .reasons[0]
        .startswith("polite got worse: 16 broken, 2 fixed of 200 chats (p = 0.0")
    )


def test_chance_in_one_of_many_criteria_does_not_fail() -> None:
    # Alone p = 0.03 would fail; one of five, it is what chance brings.
    slip = verdicts(fixed=6, broken=14, right=180)
    assert gate(slip).gate is Gate.FAIL
    assert gate(*family(slip)).gate is not Gate.FAIL


def test_a_small_loss_everywhere_fails_by_the_mean() -> None:
    draw = np.random.default_rng(3)
    chats = 400
    criteria = []
    for n in range(13):
        human = np.zeros(chats, dtype=np.int8)
        new = (draw.random(chats) < 0.03).astype(np.int8)
        criteria.append(PairedVerdicts(f"c{n}", "simple", human, human, new))
    decision = gate(*criteria, policy=replace(POLICY, family_alpha=1e-9))
    assert decision.gate is Gate.FAIL
    assert decision.reasons[0].startswith("over all criteria the candidate's accuracy is ")


def test_the_mean_is_judged_by_chat_not_by_answer() -> None:
    """Thirteen answers on one chat that change together are one observation."""
    chats, criteria = 50, 13
    human = np.zeros(chats, dtype=np.int8)
    broken = (np.arange(chats) < 3).astype(np.int8)
    pooled = count_evidence(
        [PairedVerdicts(f"c{n}", "simple", human, human, broken) for n in range(criteria)]
    ).pooled
    means = np.where(broken, -1.0, 0.0)
    assert pooled.chats == chats
    assert pooled.error == pytest.approx(means.std(ddof=1) / np.sqrt(chats))


def test_a_large_drop_of_one_criterion_keeps_the_gate_open() -> None:
    drop = verdicts(fixed=3, broken=9, right=58)
    decision = gate(*family(drop, others=12))
    assert decision.gate is Gate.INCONCLUSIVE
    assert "polite: accuracy is 8.6 points lower (limit 8.0 points)" in decision.reasons


def test_a_loss_on_one_human_answer_alone_keeps_the_gate_open() -> None:
    """The mean of both answers looks well while the rarer one suffers."""
    human = np.repeat([0, 1], [300, 40]).astype(np.int8)
    old, new = human.copy(), human.copy()
    old[:9] = 1
    new[300:305] = 0
    decision = gate(PairedVerdicts("polite", "simple", human, old, new))
    assert decision.gate is Gate.INCONCLUSIVE
    assert decision.reasons == (
        "polite may have got worse on human False: 5 broken, 0 fixed of 40 (p = 0.016)",
    )


def test_subjective_criteria_are_reported_and_never_block() -> None:
    terrible = verdicts(broken=200, tier="subjective")
    assert gate(terrible).reasons == ("directional only: no criterion of this test can block",)
    assert gate(terrible).gate is Gate.PASS
    evidence = count_evidence([terrible, verdicts(right=200, key="exact")])
    assert [found.p_holm is None for found in evidence.criteria] == [True, False]
    assert decide(evidence, policy=POLICY).gate is Gate.PASS


def test_an_answer_that_cannot_be_read_is_wrong() -> None:
    human = np.zeros(200, dtype=np.int8)
    new = human.copy()
    new[:12] = [JudgeCode.UNPARSED, JudgeCode.NA, JudgeCode.REFUSED, JudgeCode.CUT_OFF] * 3
    found = count_evidence([PairedVerdicts("polite", "simple", human, human, new)]).criteria[0]
    assert (found.broken, found.left_out) == (12, 0)


def test_calls_that_failed_are_left_out_and_too_many_keep_the_gate_open() -> None:
    human = (np.arange(400) % 2).astype(np.int8)
    new = human.copy()
    new[:30] = JudgeCode.FAILED
    verdict = PairedVerdicts("polite", "simple", human, human, new)
    assert (count_evidence([verdict]).criteria[0].n, count_evidence([verdict]).criteria[0].broken) == (370, 0)
    assert gate(verdict).reasons == (
        "polite: the candidate has no verdict on 30 of 400 labelled chats (30 failed)",
    )


def test_chats_without_a_human_answer_are_not_compared() -> None:
    human = np.array([HumanCode.UNLABELLED, HumanCode.UNRESOLVED, HumanCode.NA], dtype=np.int8)
    zeros = np.zeros(3, dtype=np.int8)
    decision = gate(PairedVerdicts("polite", "simple", human, zeros, zeros))
    assert (decision.gate, decision.reasons) == (Gate.INCONCLUSIVE, ("no labelled chats to compare",))


def test_it_says_how_many_more_labels_would_decide() -> None:
    open_ = gate(verdicts(fixed=10, broken=14, right=96))
    assert open_.gate is Gate.INCONCLUSIVE
    assert open_.more_labels == 139
    assert gate(verdicts(fixed=22, broken=30, right=208)).gate is Gate.PASS


def test_it_says_how_many_more_labels_would_decide_a_family() -> None:
    def at(chats: int) -> Sequence[PairedVerdicts]:
        draw = np.random.default_rng(5)
        human = (np.arange(chats) % 2).astype(np.int8)
        flips = draw.random((6, 2, chats)) < 0.06
        return [
            PairedVerdicts(
                f"c{n}",
                "simple",
                human,
                np.where(old, 1 - human, human).astype(np.int8),
                np.where(new, 1 - human, human).astype(np.int8),
            )
            for n, (old, new) in enumerate(flips)
        ]

    few = gate(*at(60))
    assert few.gate is Gate.INCONCLUSIVE
    assert few.more_labels is not None
    assert gate(*at(60 + 3 * few.more_labels)).gate is Gate.PASS


@pytest.mark.parametrize("second", [Gate.PASS, Gate.INCONCLUSIVE])
def test_a_fail_that_the_second_run_does_not_confirm_stays_open(second: Gate) -> None:
    first = Decision(Gate.FAIL, ("polite got worse",))
    decision = confirm(first, Decision(second, ()))
    assert decision.gate is Gate.INCONCLUSIVE
    assert "did not fail" in decision.reasons[0]
    assert "polite got worse" in decision.reasons


def test_a_confirmed_fail_is_final() -> None:
    first = Decision(Gate.FAIL, ("polite got worse",))
    assert confirm(first, first).gate is Gate.FAIL
    with pytest.raises(ValueError, match="only a FAIL"):
        confirm(Decision(Gate.PASS, ()), first)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"flor": 0.7}, "flor: is not a parameter of the gate"),
        ({"floor": 1.0}, "floor: must be a number between 0 and 1"),
        ({"floor": True}, "floor: must be a number"),
        ({"single_minimum": 0}, "single_minimum: must be a whole number, 1 or more"),
        ({"confirm": 1}, "confirm: must be true or false"),
        ({"single_many": 50}, "single_many: is not a parameter of the gate"),
        ({"name": ""}, "name: must be a text"),
        ({"version": 0}, "version: must be a whole number"),
    ],
)
def test_a_wrong_policy_is_refused_by_name(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(FieldProblem, match=message):
        GatePolicy.from_json(parameters)


def test_a_policy_comes_back_from_its_json() -> None:
    policy = replace(POLICY, name="strict", version=3, floor=0.8)
    assert GatePolicy.from_json(policy.as_json()) == policy
