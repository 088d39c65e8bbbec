"""How many more labelled chats would decide, were the shares seen so far the true ones."""

import math

import numpy as np
from scipy.special import ndtri

from alignment.regression.core.evidence import CriterionEvidence, Evidence, PooledEvidence
from alignment.regression.core.policy import GatePolicy
from alignment.statistics.paired_tests import tango_z

MOST = 20_000  # more chats than anybody labels for one release


def labels_to_decide(evidence: Evidence, *, policy: GatePolicy, passable: bool) -> int | None:
    """More chats until the gate fails, or passes where `passable` says that nothing else stands in its way.

    None where no number up to 20,000 would do. The shares of fixed and broken chats are taken as they are, so
    that this is an order of magnitude, not a promise.
    """
    blocking = evidence.blocking
    if len(blocking) == 1:
        have, needed = blocking[0].n, _alone(blocking[0], policy, passable=passable)
    else:
        have, needed = evidence.pooled.chats, _together(evidence, policy, passable=passable)
    return math.ceil(needed) - have if have < needed <= MOST else None


def _alone(found: CriterionEvidence, policy: GatePolicy, *, passable: bool) -> float:
    """Chats at which a criterion released alone is decided."""
    fails = _until_worse(found, alpha=policy.single_alpha)
    if not passable or not found.n:
        return fails
    chats = np.arange(max(found.n, policy.single_minimum), MOST + 1)
    scale = chats / found.n
    enough = ndtri(1 - policy.bound_alpha)
    passes = np.zeros(len(chats), dtype=bool)
    for many in (False, True):
        here = (chats >= policy.single_many) == many
        margin = policy.single_margin_many if many else policy.single_margin
        z = tango_z(found.fixed * scale[here], found.broken * scale[here], chats[here], at=-margin)
        passes[here] = z > enough
    return min(fails, float(chats[passes.argmax()])) if passes.any() else fails


def _together(evidence: Evidence, policy: GatePolicy, *, passable: bool) -> float:
    """Chats at which several criteria are decided: by one of them, or by their mean."""
    blocking = evidence.blocking
    alpha = policy.family_alpha / len(blocking)
    ways = [_until_worse(found, alpha=alpha) for found in blocking]
    ways.append(_until_mean_worse(evidence.pooled, policy))
    if passable:
        ways.append(_until_harmless(evidence.pooled, policy))
    return min(ways)


def _until_worse(found: CriterionEvidence, *, alpha: float) -> float:
    """Chats at which McNemar's test finds the loss, by its normal approximation; infinite without a loss."""
    loss = found.broken - found.fixed
    if loss <= 0:
        return math.inf
    return found.n * float(ndtri(alpha)) ** 2 * (found.broken + found.fixed) / loss**2


def _until_mean_worse(pooled: PooledEvidence, policy: GatePolicy) -> float:
    """Chats at which the mean's loss is found."""
    if pooled.z is None or pooled.z >= 0:
        return math.inf
    return pooled.chats * (float(ndtri(policy.pooled_alpha)) / pooled.z) ** 2


def _until_harmless(pooled: PooledEvidence, policy: GatePolicy) -> float:
    """Chats at which the mean's lower bound clears the margin; infinite where the mean itself does not."""
    if pooled.mean is None or pooled.error is None or pooled.mean <= -policy.pooled_margin:
        return math.inf
    width = float(ndtri(policy.bound_alpha)) * pooled.error
    return pooled.chats * (width / (pooled.mean + policy.pooled_margin)) ** 2
