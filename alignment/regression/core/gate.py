"""Regression gate: decide by a policy whether the candidate may replace the champion."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import ndtri

from alignment.regression.core.evidence import ClassChange, CriterionEvidence, Evidence, PooledEvidence
from alignment.regression.core.policy import GatePolicy
from alignment.reports.core.judge_side import judge_rates
from alignment.statistics.paired_tests import tango_z

NOTHING_BLOCKS = "directional only: no criterion of this test can block"
NO_CHATS = "no labelled chats to compare"
MOST_CHATS = 20_000  # upper limit of chats labelled for one release


class Gate(StrEnum):
    """Answer of the gate."""

    PASS = "pass"  # noqa: S105  no password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Decision:
    """Answer of the gate with its reasons, one sentence each.

    more_labels : about how many more labelled chats are needed for a decision at the observed rates; None if
    it is decided, or if no number suffices.
    """

    gate: Gate
    reasons: tuple[str, ...]
    more_labels: int | None = None


def decide(evidence: Evidence, *, policy: GatePolicy) -> Decision:
    """Apply the policy: FAIL if harm is found, PASS if it is ruled out, otherwise INCONCLUSIVE.

    Parameters
    ----------
    evidence : result of `weigh`. A single blocking criterion is decided by Tango's bound, several by
        Holm's family of tests and by their mean.
    policy : the limits.

    Returns
    -------
    Decision : a test of subjective criteria passes with the reason "directional only".

    Examples
    --------
    >>> import numpy as np
    >>> from alignment.regression.core import PairedVerdicts, count_evidence
    >>> human = np.repeat([0, 1], 60).astype(np.int8)
    >>> evidence = count_evidence([PairedVerdicts("polite", "simple", human, human, human)])
    >>> decide(evidence, policy=GatePolicy()).gate.value
    'pass'
    """
    if not evidence.blocking:
        return Decision(Gate.PASS, (NOTHING_BLOCKS,))
    if not any(row.n for row in evidence.blocking):
        return Decision(Gate.INCONCLUSIVE, (NO_CHATS,))
    alone = len(evidence.blocking) == 1
    if harm := tuple(_single_harm(evidence, policy) if alone else _family_harm(evidence, policy)):
        return Decision(Gate.FAIL, harm)
    unproven = tuple(_single_unproven(evidence, policy) if alone else _family_unproven(evidence, policy))
    drops = () if alone else tuple(_drops(evidence, policy))
    warned = (*drops, *(reason for row in evidence.blocking for reason in _guards(row, policy)))
    if unproven or warned:
        more = labels_to_decide(evidence, policy=policy, passable=not warned)
        return Decision(Gate.INCONCLUSIVE, (*unproven, *warned), more)
    return Decision(Gate.PASS, (_harmless(evidence, policy),))


def confirm(first: Decision, second: Decision) -> Decision:
    """Combine a FAIL with the decision on the candidate's second run: FAIL if both fail, else inconclusive.

    Raises
    ------
    ValueError : if the first decision is not a FAIL.
    """
    if first.gate is not Gate.FAIL:
        raise ValueError(f"only a FAIL is confirmed, not {first.gate.value}")
    if second.gate is Gate.FAIL:
        return Decision(Gate.FAIL, (*first.reasons, "a second run of the candidate failed too"))
    unconfirmed = (
        f"a second run of the candidate did not fail ({second.gate.value}): judge noise may be the cause"
    )
    return Decision(Gate.INCONCLUSIVE, (unconfirmed, *first.reasons), second.more_labels)


def _single_harm(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Test a criterion released alone."""
    (row,) = evidence.blocking
    if row.p_worse <= policy.single_alpha:
        yield f"{_got_worse(row)} ({chance(row.p_worse)}, limit {policy.single_alpha:g})"


def _family_harm(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Rules A and B: one criterion got worse, the mean got worse."""
    for row in evidence.blocking:
        if row.p_holm is not None and row.p_holm <= policy.family_alpha:
            yield f"{_got_worse(row)} ({chance(row.p_holm)} after Holm, limit {policy.family_alpha:g})"
    pooled, limit = evidence.pooled, float(ndtri(policy.pooled_alpha))
    if pooled.z is not None and pooled.mean is not None and pooled.z < limit:
        yield (
            f"over all criteria the candidate's accuracy is {points(-pooled.mean)} lower "
            f"(z = {pooled.z:.2f}, limit {limit:.2f})"
        )


def _got_worse(row: CriterionEvidence) -> str:
    return f"{row.key} got worse: {row.broken} broken, {row.fixed} fixed of {row.n} chats"


def _single_unproven(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Reasons why Tango's bound does not rule out a loss."""
    (row,) = evidence.blocking
    if row.n < policy.single_minimum:
        yield f"{row.key}: {row.n} labelled chats; {policy.single_minimum} are needed to pass alone"
        return
    margin = policy.single_delta(row.n)
    if float(tango_z(row.fixed, row.broken, row.n, at=-margin)) <= ndtri(1 - policy.bound_alpha):
        yield f"{row.key}: a loss of {points(margin)} is not ruled out on {row.n} chats"


def _family_unproven(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Rule C: bound of the mean."""
    low = evidence.pooled.low(policy.bound_alpha)
    if low is None:
        yield f"{evidence.pooled.chats} labelled chats are too few to estimate the mean change"
    elif low <= -policy.pooled_margin:
        limit = points(policy.pooled_margin)
        yield f"over all criteria a loss of {points(-low)} is not ruled out (limit {limit})"


def _drops(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Rule C: largest drop of one criterion."""
    for row in evidence.blocking:
        drop = -(row.table.difference or 0.0)
        if drop > policy.largest_drop:
            yield f"{row.key}: accuracy is {points(drop)} lower (limit {points(policy.largest_drop)})"


def _guards(row: CriterionEvidence, policy: GatePolicy) -> Iterator[str]:
    """Rule D, the floor, the gap to the ceiling, and excluded chats."""
    for answer in row.classes:
        if answer.n >= policy.class_minimum and answer.p_worse <= policy.class_alpha:
            yield f"{row.key} may have got worse on human {_class_loss(answer)}"
    yield from _floors(row, policy)
    labelled = row.n + row.left_out
    if row.left_out > policy.largest_left_out * labelled:
        yield f"{row.key}: calls failed on {row.left_out} of {labelled} labelled chats"


def _class_loss(row: ClassChange) -> str:
    return f"{row.answer}: {row.broken} broken, {row.fixed} fixed of {row.n} ({chance(row.p_worse)})"


def _floors(row: CriterionEvidence, policy: GatePolicy) -> Iterator[str]:
    """A candidate that is no worse than its champion can still be too bad to use."""
    rates = judge_rates(row.after)
    balanced = rates["balanced_accuracy"]
    for name, rate in (("TPR", rates["tpr"]), ("TNR", rates["tnr"])):
        if rate.value is not None and rate.value < policy.floor:
            yield f"{row.key}: {name} {rate.value:.2f} is below the floor {policy.floor:.2f}"
    if balanced.value is None or row.ceiling is None:
        return
    gap, limit = row.ceiling - balanced.value, points(policy.ceiling_gap)
    if gap > policy.ceiling_gap:
        yield f"{row.key}: balanced accuracy is {points(gap)} below the human ceiling (limit {limit})"


def _harmless(evidence: Evidence, policy: GatePolicy) -> str:
    """Return the reason for a PASS."""
    level = f"{100 * (1 - policy.bound_alpha):g}% confidence"
    if len(evidence.blocking) == 1:
        (row,) = evidence.blocking
        counts = f"{row.key}: {row.fixed} fixed, {row.broken} broken of {row.n} chats"
        return f"{counts}; with {level} not worse by {points(policy.single_delta(row.n))} or more"
    low = evidence.pooled.low(policy.bound_alpha) or 0.0
    return (
        "no criterion got significantly worse; over all criteria the change is"
        f" {points(low)} or better with {level}"
    )


def labels_to_decide(evidence: Evidence, *, policy: GatePolicy, passable: bool) -> int | None:
    """Estimate how many more chats the gate needs to fail, or to pass if `passable`.

    Returns None if 20,000 chats do not suffice. The observed rates of fixed and broken chats are taken as
    true, so the result is an order of magnitude.
    """
    blocking = evidence.blocking
    if len(blocking) == 1:
        have, needed = blocking[0].n, _chats_alone(blocking[0], policy, passable=passable)
    else:
        have, needed = evidence.pooled.chats, _chats_together(evidence, policy, passable=passable)
    return math.ceil(needed) - have if have < needed <= MOST_CHATS else None


def _chats_alone(row: CriterionEvidence, policy: GatePolicy, *, passable: bool) -> float:
    """Return the chats at which a criterion released alone is decided."""
    fails = _until_worse(row, alpha=policy.single_alpha)
    if not passable or not row.n:
        return fails
    chats = np.arange(max(row.n, policy.single_minimum), MOST_CHATS + 1)
    scale = chats / row.n
    enough = ndtri(1 - policy.bound_alpha)
    passes = np.zeros(len(chats), dtype=bool)
    for many in (False, True):
        here = (chats >= policy.single_many) == many
        margin = policy.single_margin_many if many else policy.single_margin
        z = tango_z(row.fixed * scale[here], row.broken * scale[here], chats[here], at=-margin)
        passes[here] = z > enough
    return min(fails, float(chats[passes.argmax()])) if passes.any() else fails


def _chats_together(evidence: Evidence, policy: GatePolicy, *, passable: bool) -> float:
    """Return the chats at which several criteria are decided, by one of them or by their mean."""
    blocking = evidence.blocking
    alpha = policy.family_alpha / len(blocking)
    ways = [_until_worse(row, alpha=alpha) for row in blocking]
    ways.append(_until_mean_worse(evidence.pooled, policy))
    if passable:
        ways.append(_until_harmless(evidence.pooled, policy))
    return min(ways)


def _until_worse(row: CriterionEvidence, *, alpha: float) -> float:
    """Return the chats at which McNemar's test finds the loss (normal approximation), or infinity."""
    loss = row.broken - row.fixed
    if loss <= 0:
        return math.inf
    return row.n * float(ndtri(alpha)) ** 2 * (row.broken + row.fixed) / loss**2


def _until_mean_worse(pooled: PooledEvidence, policy: GatePolicy) -> float:
    """Return the chats at which the loss of the mean is found."""
    if pooled.z is None or pooled.z >= 0:
        return math.inf
    return pooled.chats * (float(ndtri(policy.pooled_alpha)) / pooled.z) ** 2


def _until_harmless(pooled: PooledEvidence, policy: GatePolicy) -> float:
    """Return the chats at which the bound of the mean clears the margin; infinite if the mean does not."""
    if pooled.mean is None or pooled.error is None or pooled.mean <= -policy.pooled_margin:
        return math.inf
    width = float(ndtri(policy.bound_alpha)) * pooled.error
    return pooled.chats * (width / (pooled.mean + policy.pooled_margin)) ** 2


def chance(p_value: float) -> str:
    """Format a p value.

    >>> chance(0.0004), chance(0.0213)
    ('p < 0.001', 'p = 0.021')
    """
    return f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"


def points(share: float) -> str:
    """Format a share as percentage points.

    >>> points(0.0213)
    '2.1 points'
    """
    return f"{100 * share:.1f} points".replace("-", "−")
