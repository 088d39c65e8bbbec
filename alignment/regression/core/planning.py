"""Number of further labelled chats needed for a decision at the observed rates."""

import math

import numpy as np
from scipy.special import ndtri

from alignment.regression.core.evidence import CriterionEvidence, Evidence, PooledEvidence
from alignment.regression.core.policy import GatePolicy
from alignment.statistics.paired_tests import tango_z

MOST = 20_000  # upper limit of chats labelled for one release


def labels_to_decide(evidence: Evidence, *, policy: GatePolicy, passable: bool) -> int | None:
    """Estimate how many more chats the gate needs to fail, or to pass if `passable`.

    Returns None if 20,000 chats do not suffice. The observed rates of fixed and broken chats are taken as
    true, so the result is an order of magnitude.
    """
    blocking = evidence.blocking
    if len(blocking) == 1:
        have, needed = blocking[0].n, _alone(blocking[0], policy, passable=passable)
    else:
        have, needed = evidence.pooled.chats, _together(evidence, policy, passable=passable)
    return math.ceil(needed) - have if have < needed <= MOST else None


def _alone(row: CriterionEvidence, policy: GatePolicy, *, passable: bool) -> float:
    """Return the chats at which a criterion released alone is decided."""
    fails = _until_worse(row, alpha=policy.single_alpha)
    if not passable or not row.n:
        return fails
    chats = np.arange(max(row.n, policy.single_minimum), MOST + 1)
    scale = chats / row.n
    enough = ndtri(1 - policy.bound_alpha)
    passes = np.zeros(len(chats), dtype=bool)
    for many in (False, True):
        here = (chats >= policy.single_many) == many
        margin = policy.single_margin_many if many else policy.single_margin
        z = tango_z(row.fixed * scale[here], row.broken * scale[here], chats[here], at=-margin)
        passes[here] = z > enough
    return min(fails, float(chats[passes.argmax()])) if passes.any() else fails


def _together(evidence: Evidence, policy: GatePolicy, *, passable: bool) -> float:
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
