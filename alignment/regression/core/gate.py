"""The regression gate: may the candidate replace the champion, decided on the evidence by a policy."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from scipy.special import ndtri

from alignment.regression.core.evidence import ClassChange, CriterionEvidence, Evidence
from alignment.regression.core.planning import labels_to_decide
from alignment.regression.core.policy import GatePolicy
from alignment.reports.core.judge_side import judge_rates
from alignment.statistics.paired_tests import tango_z

NOTHING_BLOCKS = "directional only: no criterion of this test may block"
NO_CHATS = "no labelled chat to compare on"


class Gate(StrEnum):
    """What the gate says."""

    PASS = "pass"  # noqa: S105  no password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Decision:
    """The gate's answer and why, one sentence a reason.

    `more_labels` : about how many more labelled chats would decide, were the shares to stay as they are; None
    where it is decided, or where no number would do.
    """

    gate: Gate
    reasons: tuple[str, ...]
    more_labels: int | None = None


def decide(evidence: Evidence, *, policy: GatePolicy) -> Decision:
    """Apply the policy: FAIL where harm is found, PASS where it is ruled out, else INCONCLUSIVE.

    Parameters
    ----------
    evidence : what `weigh` counted. One criterion that may block is decided by itself (Tango's bound),
        several by Holm's family of tests and their mean.
    policy : the limits.

    Returns
    -------
    Decision : subjective criteria alone pass with the reason "directional only".

    Examples
    --------
    >>> import numpy as np
    >>> from alignment.regression.core import PairedVerdicts, weigh
    >>> people = np.repeat([0, 1], 60).astype(np.int8)
    >>> found = weigh([PairedVerdicts("polite", "simple", people, people, people)])
    >>> decide(found, policy=GatePolicy()).gate.value
    'pass'
    """
    if not evidence.blocking:
        return Decision(Gate.PASS, (NOTHING_BLOCKS,))
    if not any(found.n for found in evidence.blocking):
        return Decision(Gate.INCONCLUSIVE, (NO_CHATS,))
    alone = len(evidence.blocking) == 1
    if harm := tuple(_single_harm(evidence, policy) if alone else _family_harm(evidence, policy)):
        return Decision(Gate.FAIL, harm)
    unproven = tuple(_single_unproven(evidence, policy) if alone else _family_unproven(evidence, policy))
    drops = () if alone else tuple(_drops(evidence, policy))
    warned = (*drops, *(reason for found in evidence.blocking for reason in _guards(found, policy)))
    if unproven or warned:
        more = labels_to_decide(evidence, policy=policy, passable=not warned)
        return Decision(Gate.INCONCLUSIVE, (*unproven, *warned), more)
    return Decision(Gate.PASS, (_harmless(evidence, policy),))


def confirm(first: Decision, second: Decision) -> Decision:
    """A FAIL after the candidate's second run: final where that fails too, else inconclusive.

    Raises
    ------
    ValueError : the first decision is no FAIL: only that is confirmed.
    """
    if first.gate is not Gate.FAIL:
        raise ValueError(f"only a FAIL is confirmed, not {first.gate.value}")
    if second.gate is Gate.FAIL:
        return Decision(Gate.FAIL, (*first.reasons, "a second run of the candidate failed as well"))
    unconfirmed = (
        f"a second run of the candidate did not fail ({second.gate.value}): judge noise may be the cause"
    )
    return Decision(Gate.INCONCLUSIVE, (unconfirmed, *first.reasons), second.more_labels)


def _single_harm(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """The test of a criterion released alone."""
    (found,) = evidence.blocking
    if found.p_worse <= policy.single_alpha:
        yield f"{_got_worse(found)} ({chance(found.p_worse)}, limit {policy.single_alpha:g})"


def _family_harm(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Rules A and B: some criterion got worse, the mean got worse."""
    for found in evidence.blocking:
        if found.p_holm is not None and found.p_holm <= policy.family_alpha:
            yield f"{_got_worse(found)} ({chance(found.p_holm)} after Holm, limit {policy.family_alpha:g})"
    pooled, limit = evidence.pooled, float(ndtri(policy.pooled_alpha))
    if pooled.z is not None and pooled.mean is not None and pooled.z < limit:
        yield (
            f"over all criteria the candidate is right on {points(-pooled.mean)} less "
            f"(z = {pooled.z:.2f}, limit {limit:.2f})"
        )


def _got_worse(found: CriterionEvidence) -> str:
    return f"{found.key} got worse: {found.broken} broken, {found.fixed} fixed of {found.n} chats"


def _single_unproven(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """What keeps Tango's bound from ruling a loss out."""
    (found,) = evidence.blocking
    if found.n < policy.single_minimum:
        yield f"{found.key}: {found.n} labelled chats, {policy.single_minimum} are needed to pass alone"
        return
    margin = policy.single_delta(found.n)
    if float(tango_z(found.fixed, found.broken, found.n, at=-margin)) <= ndtri(1 - policy.bound_alpha):
        yield f"{found.key}: a loss of {points(margin)} is not ruled out on {found.n} chats"


def _family_unproven(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Rule C, its bound."""
    low = evidence.pooled.low(policy.bound_alpha)
    if low is None:
        yield f"{evidence.pooled.chats} labelled chats are too few to say how the mean changed"
    elif low <= -policy.pooled_margin:
        limit = points(policy.pooled_margin)
        yield f"over all criteria a loss of {points(-low)} is not ruled out (limit {limit})"


def _drops(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Rule C, the largest drop of one criterion."""
    for found in evidence.blocking:
        drop = -(found.table.difference or 0.0)
        if drop > policy.largest_drop:
            yield f"{found.key} is right on {points(drop)} less (limit {points(policy.largest_drop)})"


def _guards(found: CriterionEvidence, policy: GatePolicy) -> Iterator[str]:
    """Rule D, the floor and the gap to the ceiling, and chats left out."""
    for side in found.classes:
        if side.n >= policy.class_minimum and side.p_worse <= policy.class_alpha:
            yield f"{found.key} may have got worse where people say {_class_loss(side)}"
    yield from _floors(found, policy)
    labelled = found.n + found.left_out
    if found.left_out > policy.largest_left_out * labelled:
        yield f"{found.key}: calls failed on {found.left_out} of {labelled} labelled chats"


def _class_loss(side: ClassChange) -> str:
    return f"{side.answer}: {side.broken} broken, {side.fixed} fixed of {side.n} ({chance(side.p_worse)})"


def _floors(found: CriterionEvidence, policy: GatePolicy) -> Iterator[str]:
    """A judge that is not worse than its champion may still be no judge."""
    rates = judge_rates(found.after)
    balanced = rates["balanced_accuracy"]
    for name, rate in (("TPR", rates["tpr"]), ("TNR", rates["tnr"])):
        if rate.value is not None and rate.value < policy.floor:
            yield f"{found.key}: {name} {rate.value:.2f} is below the floor {policy.floor:.2f}"
    if balanced.value is None or found.ceiling is None:
        return
    gap, limit = found.ceiling - balanced.value, points(policy.ceiling_gap)
    if gap > policy.ceiling_gap:
        yield f"{found.key}: balanced accuracy is {points(gap)} under the human ceiling (limit {limit})"


def _harmless(evidence: Evidence, policy: GatePolicy) -> str:
    """Why it passes."""
    level = f"{100 * (1 - policy.bound_alpha):g}% confidence"
    if len(evidence.blocking) == 1:
        (found,) = evidence.blocking
        counts = f"{found.key}: {found.fixed} fixed, {found.broken} broken of {found.n} chats"
        return f"{counts}; with {level} not worse by {points(policy.single_delta(found.n))} or more"
    low = evidence.pooled.low(policy.bound_alpha) or 0.0
    return (
        "no criterion is shown to have got worse; over all criteria the change is"
        f" {points(low)} or better with {level}"
    )


def chance(p_value: float) -> str:
    """A p value in words.

    >>> chance(0.0004), chance(0.0213)
    ('p < 0.001', 'p = 0.021')
    """
    return f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"


def points(share: float) -> str:
    """A share as percentage points.

    >>> points(0.0213)
    '2.1 points'
    """
    return f"{100 * share:.1f} points".replace("-", "−")
