"""What decides an inconclusive test: more labels where they can, otherwise something else."""

import math

import numpy as np
from scipy.special import ndtri

from alignment.regression.core.evidence import CriterionEvidence, Evidence, PooledEvidence
from alignment.regression.core.policy import GatePolicy
from alignment.statistics.paired_tests import tango_z

# Labelled chats in all, above which no number is advised.
MOST_CHATS = 1_000
MISSING = "more labels do not help while verdicts are missing: remove the cause, then test again"
UNUSABLE = (
    "more labels do not help until raters agree: where they disagree, refine the guideline, then label these"
    " chats again; where chats are unresolved, adjudicate them"
)
FLOORS = (
    "more labels do not decide: the candidate must reach the champion's rates or keep the floor and the gap"
    " to the human ceiling"
)
TRADE = "more labels do not decide at these rates: read the broken chats"
RUNS_DIFFER = "the candidate's two runs differ: test again"
NO_LABELS = "label chats of this set first"


def verdicts_needed(remedy: str) -> str:
    """Return what to do about missing verdicts; `remedy` is '' if calls failed.

    >>> verdicts_needed("change the model")
    'more labels do not help: change the model, then test again'
    """
    return f"more labels do not help: {remedy}, then test again" if remedy else MISSING


def labels_needed(more: int, *, clustered: bool = False) -> str:
    """Name a number of labels with its decision. More chats of the same clusters would show little.

    >>> labels_needed(90)
    'about 90 more labelled chats are needed for the gate'
    """
    chats = f"{'chat' if more == 1 else 'chats'}{' in new clusters' if clustered else ''}"
    return f"about {more:,} more labelled {chats} {'is' if more == 1 else 'are'} needed for the gate"


def labels_to_decide(evidence: Evidence, *, policy: GatePolicy, passable: bool) -> int | None:
    """Estimate how many more chats the gate needs to fail, or to pass if `passable`.

    Returns None if 1,000 chats in all do not suffice. The observed rates of fixed and broken chats, and the
    size of clusters, are taken as true, so the result is an order of magnitude.
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
    if not passable:
        return fails
    per_unit, pairs = row.n / row.units if row.units else 1, row.pairs
    chats = np.arange(max(row.n, math.ceil(policy.single_minimum * per_unit)), MOST_CHATS + 1)
    scale = chats / max(row.n, 1)
    effective = pairs.n * scale if row.clusters else chats
    z = tango_z(pairs.first * scale, pairs.second * scale, effective, at=-policy.single_margin)
    passes = chats[z > ndtri(1 - policy.bound_alpha)]
    return min(fails, float(passes[0])) if len(passes) else fails


def _chats_together(evidence: Evidence, policy: GatePolicy, *, passable: bool) -> float:
    """Return the chats at which several criteria are decided, by one of them or by their mean."""
    blocking = evidence.blocking
    alpha = policy.family_alpha / len(blocking)
    ways = [_until_worse(row, alpha=alpha) for row in blocking]
    ways.append(_until_mean_worse(evidence.pooled, policy))
    if passable:
        ways.append(max(_until_harmless(evidence.pooled, policy), _until_enough(evidence, policy)))
    return min(ways)


def _until_enough(evidence: Evidence, policy: GatePolicy) -> float:
    """Return the chats at which the changed criteria have the least number of chats, or of clusters."""
    changed = [row for row in evidence.blocking if row.revised] or list(evidence.blocking)
    units = max(row.units for row in changed)
    return evidence.pooled.chats * policy.together_minimum / units if units else math.inf


def _until_worse(row: CriterionEvidence, *, alpha: float) -> float:
    """Return the chats at which McNemar's test finds the loss (normal approximation), or infinity."""
    loss = row.pairs.second - row.pairs.first
    if loss <= 0:
        return math.inf
    return row.n * float(ndtri(alpha)) ** 2 * (row.pairs.second + row.pairs.first) / loss**2


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
