"""Result of a regression test as JSON."""

from collections.abc import Mapping
from typing import Any

from alignment.regression.core.evidence import CriterionEvidence, Evidence
from alignment.regression.core.gate import Decision
from alignment.reports.core.judge_side import judge_statistics
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.intervals import RESAMPLES

# Statistics of either judge, in page order.
STATISTICS = ("tpr", "tnr", "balanced_accuracy", "gwet_ac1", "kappa")


def regression_body(
    evidence: Evidence, decision: Decision, *, seed: int, noise: Mapping[str, Estimate] | None = None
) -> dict[str, Any]:
    """Return the counts, tests and intervals that are stored with the result.

    Parameters
    ----------
    seed : seed of the chat bootstrap for AC1 and kappa.
    noise : share of verdicts that change when one judge is asked again, by criterion key.
    """
    pooled = evidence.pooled
    return {
        "gate": decision.gate.value,
        "reasons": list(decision.reasons),
        "more_labels": decision.more_labels,
        "criteria": [_criterion(row, (noise or {}).get(row.key), seed) for row in evidence.criteria],
        "pooled": {"chats": pooled.chats, "change": pooled.mean, "error": pooled.error, "z": pooled.z},
        "bootstrap": {"seed": seed, "resamples": RESAMPLES},
    }


def _criterion(criterion: CriterionEvidence, noise: Estimate | None, seed: int) -> dict[str, Any]:
    table = criterion.table
    return {
        "key": criterion.key,
        "tier": criterion.tier,
        "n": criterion.n,
        "left_out": criterion.left_out,
        "fixed": criterion.fixed,
        "broken": criterion.broken,
        "still_right": table.both,
        "still_wrong": table.neither,
        "change": criterion.difference.as_json(),
        "p_worse": criterion.p_worse,
        "p_holm": criterion.p_holm,
        "before": _judge(criterion, criterion.before, seed),
        "after": _judge(criterion, criterion.after, seed),
        "classes": [
            {
                "human": row.answer,
                "n": row.n,
                "fixed": row.fixed,
                "broken": row.broken,
                "p_worse": row.p_worse,
            }
            for row in criterion.classes
        ],
        "ceiling": criterion.ceiling,
        "noise": None if noise is None else noise.as_json(),
    }


def _judge(criterion: CriterionEvidence, table: Confusion, seed: int) -> dict[str, Any]:
    """Confusion matrix and statistics of one judge; `no_verdict` counts answers other than True and False."""
    every = judge_statistics(table, seed=seed)
    statistics = {name: every[name] for name in STATISTICS}
    return {
        "confusion": {"tp": table.tp, "fn": table.fn, "fp": table.fp, "tn": table.tn},
        "no_verdict": criterion.n - table.n,
        **{name: estimate.as_json() for name, estimate in statistics.items()},
        "undefined": undefined_reasons(statistics),
    }
