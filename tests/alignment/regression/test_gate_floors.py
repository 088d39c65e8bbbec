"""Floor and ceiling gap block where the candidate is worse than the champion; else they are cautions."""

from dataclasses import replace

import numpy as np

from alignment.comparison.core.codes import JudgeCode
from alignment.regression.core import Decision, Gate, GatePolicy, PairedVerdicts, count_evidence, decide
from tests.factories.gate_verdicts import verdicts

POLICY = GatePolicy()


def gate(*criteria: PairedVerdicts) -> Decision:
    return decide(count_evidence(criteria), policy=POLICY)


def test_a_repair_below_the_floor_passes_with_a_caution() -> None:
    """TPR and TNR from 0.50 to 0.67."""
    decision = gate(verdicts(fixed=34, right=100, wrong=66))
    assert decision.gate is Gate.PASS
    assert decision.reasons[0].startswith("polite: 34 fixed, 0 broken of 200 chats; at worst +")
    assert decision.cautions == (
        "polite: TPR 0.67 is below the floor 0.70, not worse than the champion's 0.50",
        "polite: TNR 0.67 is below the floor 0.70, not worse than the champion's 0.50",
    )


def test_an_unchanged_candidate_below_the_floor_passes_with_a_caution() -> None:
    decision = gate(verdicts(right=200, wrong=150))
    assert decision.gate is Gate.PASS
    assert len(decision.cautions) == 2


def test_a_candidate_that_falls_below_the_floor_stays_open() -> None:
    decision = gate(verdicts(fixed=2, broken=6, right=274, wrong=118))
    assert decision.gate is Gate.INCONCLUSIVE
    assert decision.reasons == (
        "polite: TPR 0.69 is below the floor 0.70 and worse than the champion's (3 broken, 1 fixed)",
        "polite: TNR 0.69 is below the floor 0.70 and worse than the champion's (3 broken, 1 fixed)",
    )
    assert decision.cautions == ()


def test_the_gap_to_the_ceiling_blocks_only_a_candidate_that_is_worse_by_more_than_two_points() -> None:
    worse = gate(verdicts(fixed=30, broken=41, right=290, wrong=39, ceiling=0.95))
    assert (worse.gate, worse.reasons) == (
        Gate.INCONCLUSIVE,
        (
            "polite: balanced accuracy is 15.0 points below the human ceiling (limit 10.0 points) and 2.8"
            " points lower than the champion's",
        ),
    )
    better = gate(verdicts(fixed=4, broken=8, right=316, wrong=72, ceiling=0.95))
    assert (better.gate, better.cautions) == (
        Gate.PASS,
        (
            "polite: balanced accuracy is 15.0 points below the human ceiling (limit 10.0 points), not lower"
            " than the champion's by more than 2.0 points",
        ),
    )


def test_a_sibling_of_the_same_call_with_a_poor_tnr_does_not_block_a_revision() -> None:
    """Its prompt is unchanged; one verdict more broken than fixed is noise."""
    human = np.repeat([0, 1], [140, 60]).astype(np.int8)
    old, new = human.copy(), human.copy()
    old[140:170], new[141:172] = 0, 0  # TNR 0.50 and 0.48: 1 fixed, 2 broken
    sibling = PairedVerdicts("grounded", "simple", human, old, new, 0.95, revised=False)
    revision = verdicts(fixed=10, right=190)
    decision = gate(revision, sibling)
    assert decision.gate is Gate.PASS
    assert decision.cautions == (
        "grounded: TNR 0.48 is below the floor 0.70; this test does not change its prompt",
        "grounded: balanced accuracy is 20.8 points below the human ceiling (limit 10.0 points); this test"
        " does not change its prompt",
    )
    assert gate(revision, replace(sibling, revised=True)).gate is Gate.INCONCLUSIVE


def test_a_rate_that_rises_only_because_answers_were_cut_off_is_worse() -> None:
    """TPR of the chats answered rises from 0.60 to 0.64 while 24 right answers were lost."""
    human = np.repeat([0, 1], [100, 300]).astype(np.int8)
    old, new = human.copy(), human.copy()
    old[:40] = 1
    new[:40] = 1
    new[:20] = 0  # fixed
    new[60:84] = JudgeCode.CUT_OFF
    decision = gate(PairedVerdicts("polite", "simple", human, old, new))
    assert decision.gate is Gate.INCONCLUSIVE
    assert decision.reasons[0].startswith("polite: the candidate has no verdict on 24 of 400 labelled chats")


def test_subjective_criteria_give_no_cautions() -> None:
    assert gate(verdicts(right=100, wrong=100, tier="subjective"), verdicts(right=200)).cautions == ()
