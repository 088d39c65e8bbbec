"""A regression test's findings as JSON."""

from collections.abc import Mapping
from typing import Any

from alignment.core.agreement import Confusion
from alignment.core.estimates import Estimate

from .evidence import CriterionEvidence, Evidence
from .gate import Decision


def regression_body(
    evidence: Evidence, decision: Decision, *, noise: Mapping[str, Estimate] | None = None
) -> dict[str, Any]:
    """What is stored with the result (docs/files.md): counts, tests and intervals.

    `noise` : by criterion key, the share of verdicts that flip when the champion is asked again.
    """
    pooled = evidence.pooled
    return {
        "gate": decision.gate.value,
        "reasons": list(decision.reasons),
        "more_labels": decision.more_labels,
        "criteria": [_criterion(found, (noise or {}).get(found.key)) for found in evidence.criteria],
        "pooled": {"chats": pooled.chats, "change": pooled.mean, "error": pooled.error, "z": pooled.z},
    }


def _criterion(found: CriterionEvidence, noise: Estimate | None) -> dict[str, Any]:
    table = found.table
    return {
        "key": found.key,
        "tier": found.tier,
        "n": found.n,
        "left_out": found.left_out,
        "fixed": found.fixed,
        "broken": found.broken,
        "still_right": table.both,
        "still_wrong": table.neither,
        "change": found.difference.as_json(),
        "p_worse": found.p_worse,
        "p_holm": found.p_holm,
        "before": _side(found, found.before),
        "after": _side(found, found.after),
        "classes": [
            {
                "human": side.answer,
                "n": side.n,
                "fixed": side.fixed,
                "broken": side.broken,
                "p_worse": side.p_worse,
            }
            for side in found.classes
        ],
        "ceiling": found.ceiling,
        "noise": None if noise is None else noise.as_json(),
    }


def _side(found: CriterionEvidence, table: Confusion) -> dict[str, Any]:
    """One judge's confusion and rates; `no_verdict` counts answers that are neither True nor False."""
    tpr, tnr, balanced = found.rates(table)
    return {
        "confusion": {"tp": table.tp, "fn": table.fn, "fp": table.fp, "tn": table.tn},
        "no_verdict": found.n - table.n,
        "tpr": tpr.as_json(),
        "tnr": tnr.as_json(),
        "balanced_accuracy": balanced.as_json(),
    }
