"""A regression test's findings as JSON."""

from collections.abc import Mapping
from typing import Any

from alignment.regression.core.evidence import CriterionEvidence, Evidence
from alignment.regression.core.gate import Decision
from alignment.reports.core.judge_side import judge_statistics
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.intervals import RESAMPLES

# Of each side, in the order of the page.
STATISTICS = ("tpr", "tnr", "balanced_accuracy", "gwet_ac1", "kappa")


def regression_body(
    evidence: Evidence, decision: Decision, *, seed: int, noise: Mapping[str, Estimate] | None = None
) -> dict[str, Any]:
    """What is stored with the result (docs/gate.md): counts, tests and intervals.

    Parameters
    ----------
    seed : of the chat bootstrap for AC1 and kappa.
    noise : by criterion key, the share of verdicts that flip when one judge is asked again.
    """
    pooled = evidence.pooled
    return {
        "gate": decision.gate.value,
        "reasons": list(decision.reasons),
        "more_labels": decision.more_labels,
        "criteria": [_criterion(found, (noise or {}).get(found.key), seed) for found in evidence.criteria],
        "pooled": {"chats": pooled.chats, "change": pooled.mean, "error": pooled.error, "z": pooled.z},
        "bootstrap": {"seed": seed, "resamples": RESAMPLES},
    }


def _criterion(found: CriterionEvidence, noise: Estimate | None, seed: int) -> dict[str, Any]:
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
        "before": _side(found, found.before, seed),
        "after": _side(found, found.after, seed),
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


def _side(found: CriterionEvidence, table: Confusion, seed: int) -> dict[str, Any]:
    """One judge's confusion and statistics; `no_verdict` counts answers that are neither True nor False."""
    every = judge_statistics(table, seed=seed)
    shown = {name: every[name] for name in STATISTICS}
    return {
        "confusion": {"tp": table.tp, "fn": table.fn, "fp": table.fp, "tn": table.tn},
        "no_verdict": found.n - table.n,
        **{name: estimate.as_json() for name, estimate in shown.items()},
        "undefined": undefined_reasons(shown),
    }
