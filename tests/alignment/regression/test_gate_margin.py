"""One tolerated loss at every number of chats: no cliff, and the page says the bound itself."""

import numpy as np
import pytest
from scipy.special import gammaln, xlogy

from alignment.regression.core import Decision, Gate, GatePolicy, PairedVerdicts, count_evidence, decide
from tests.factories.gate_verdicts import verdicts

POLICY = GatePolicy()


def alone(*, fixed: int, broken: int, chats: int) -> Decision:
    """A criterion released alone; all other verdicts are right and unchanged."""
    criterion = verdicts(fixed=fixed, broken=broken, right=chats - fixed - broken)
    return decide(count_evidence([criterion]), policy=POLICY)


def test_a_result_that_passes_at_299_chats_passes_at_300() -> None:
    assert [alone(fixed=15, broken=22, chats=n).gate for n in (299, 300, 301)] == [Gate.PASS] * 3


@pytest.mark.parametrize(("fixed", "broken"), [(0, 0), (3, 4), (15, 22), (30, 38), (12, 2)])
def test_one_more_unchanged_chat_never_turns_a_pass_into_an_inconclusive(fixed: int, broken: int) -> None:
    gates = [alone(fixed=fixed, broken=broken, chats=n).gate for n in range(90, 420)]
    first = gates.index(Gate.PASS)
    assert set(gates[:first]) <= {Gate.INCONCLUSIVE}
    assert set(gates[first:]) == {Gate.PASS}


def test_one_more_unchanged_chat_of_a_rare_answer_turns_no_pass_into_an_inconclusive() -> None:
    """The guard on one human answer applies to 5 broken of 29 chats as it does to 5 of 30."""
    gates = []
    for rare in range(10, 61):
        human = np.repeat([0, 1], [300, rare]).astype(np.int8)
        old, new = human.copy(), human.copy()
        old[:9], new[300:305] = 1, 0
        gates.append(
            decide(count_evidence([PairedVerdicts("polite", "simple", human, old, new)]), policy=POLICY)
        )
    assert {decision.gate for decision in gates} == {Gate.INCONCLUSIVE}


@pytest.mark.parametrize("changed", [(0, 0), (2, 4), (12, 15)])
def test_one_more_unchanged_chat_turns_no_pass_of_several_criteria_into_an_inconclusive(
    changed: tuple[int, int],
) -> None:
    fixed, broken = changed
    gates = []
    for chats in range(40, 500, 3):
        first = verdicts(fixed=fixed, broken=broken, right=chats - fixed - broken)
        others = [verdicts(right=chats, key=f"other_{n}") for n in range(3)]
        gates.append(decide(count_evidence([first, *others]), policy=POLICY).gate)
    assert set(gates[gates.index(Gate.PASS) :]) == {Gate.PASS}


def test_a_pass_says_the_bound_and_the_limit() -> None:
    """Tango's one-sided 95% bound of 12 fixed, 6 broken of 300: the low end of the two-sided 90% interval."""
    decision = alone(fixed=12, broken=6, chats=300)
    assert decision.reasons == (
        "polite: 12 fixed, 6 broken of 300 chats; at worst −0.4 points with 95% confidence"
        " (limit −8.0 points)",
    )
    assert decision.bound == pytest.approx(-0.0039, abs=5e-4)


def test_an_inconclusive_says_the_bound_and_the_limit() -> None:
    decision = alone(fixed=9, broken=15, chats=110)
    assert decision.gate is Gate.INCONCLUSIVE
    assert decision.reasons == (
        "polite: at worst −13.0 points with 95% confidence on 110 chats (limit −8.0 points)",
    )


def test_several_criteria_say_the_bound_of_their_mean() -> None:
    criteria = [verdicts(fixed=4, broken=4, right=192), verdicts(right=200, key="exact")]
    decision = decide(count_evidence(criteria), policy=POLICY)
    assert decision.gate is Gate.PASS
    assert decision.reasons == (
        "no criterion got significantly worse; over all criteria at worst −1.2 points with 95% confidence"
        " (limit −2.0 points)",
    )
    assert decision.bound == pytest.approx(-0.0117, abs=5e-4)


@pytest.mark.parametrize(("chats", "changing"), [(100, 0.04), (100, 0.08), (100, 0.12), (150, 0.08)])
def test_a_loss_of_ten_points_passes_in_two_percent_at_most_and_equal_judges_fail_in_five(
    chats: int, changing: float
) -> None:
    """Exact: the decision on every count of fixed and broken chats, weighted by its probability."""
    half = changing / 2
    assert _share(Gate.PASS, chats, fixed=half, broken=half + 0.10) <= 0.02
    assert _share(Gate.FAIL, chats, fixed=half, broken=half) <= 0.05


def _share(gate: Gate, chats: int, *, fixed: float, broken: float) -> float:
    """Probability of an answer if this share of the chats is fixed and broken."""
    better, worse = np.meshgrid(np.arange(chats + 1), np.arange(chats + 1))
    possible = better + worse <= chats
    better, worse = better[possible], worse[possible]
    rest = chats - better - worse
    ways = gammaln(chats + 1) - gammaln(better + 1) - gammaln(worse + 1) - gammaln(rest + 1)
    logs = ways + xlogy(better, fixed) + xlogy(worse, broken) + xlogy(rest, 1 - fixed - broken)
    weights = np.exp(logs)
    likely = weights > 1e-5
    return sum(
        float(weight)
        for fix, lost, weight in zip(better[likely], worse[likely], weights[likely], strict=True)
        if alone(fixed=int(fix), broken=int(lost), chats=chats).gate is gate
    )
