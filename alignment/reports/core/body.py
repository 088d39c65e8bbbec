"""The report's JSON body."""

from collections.abc import Callable
from typing import Any

from alignment.comparison.core.codes import CriterionData, ReportData
from alignment.reports.core.criterion import criterion_entry
from alignment.reports.core.disagreements import disagreements
from alignment.reports.core.pooled import pooled
from alignment.reports.core.status import StatusPolicy
from alignment.session_scores.core import score_agreement
from alignment.statistics.intervals import RESAMPLES

TIERS = ("simple", "context", "subjective")


def build_report(
    data: ReportData, *, policy: StatusPolicy, seed: int, subjective: bool = False
) -> dict[str, Any]:
    """Return the JSON body of an alignment report: counts, statistics, status, disagreements.

    Parameters
    ----------
    data : answer codes of raters and judge by chat and criterion.
    policy : the limits that decide each criterion's status.
    seed : seed of every bootstrap. It is stored in the body, so the same data gives the same intervals.
    subjective : whether subjective criteria count in the session score.

    Returns
    -------
    dict : plain Python values, ready for JSON. An undefined value is None, never NaN, with its reason under
        `undefined`. Without a run every judge field is None, and `n` counts the chats with a human True or
        False.

    Examples
    --------
    >>> import numpy as np
    >>> from alignment.comparison.core.codes import CriterionSpec
    >>> spec = CriterionSpec("polite", "compliance", "Compliance", "simple", True)
    >>> human, judge = np.array([0, 0, 1], dtype=np.int8), np.array([0, 1, 1], dtype=np.int8)
    >>> labels = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    >>> data = ReportData(["c1", "c2", "c3"], (CriterionData(spec, human, judge, labels, 1),))
    >>> body = build_report(data, policy=StatusPolicy(), seed=1)
    >>> body["criteria"][0]["confusion"], body["disagreements"][0]["chat_id"]
    ({'tp': 1, 'fn': 1, 'fp': 0, 'tn': 1}, 'c2')
    """
    first, total = disagreements(data)
    return {
        "chats": len(data.chat_ids),
        "criteria": [criterion_entry(data, one, policy=policy, seed=seed) for one in data.criteria],
        "dimensions": _dimensions(data),
        "tiers": _tiers(data),
        "overall": pooled(data, data.criteria),
        "disagreements": first,
        "disagreements_total": total,
        "session_score": score_agreement(data, subjective=subjective, seed=seed),
        "policy": policy.as_json(),
        "bootstrap": {"seed": seed, "resamples": RESAMPLES},
    }


def _grouped(data: ReportData, key: Callable[[CriterionData], str]) -> dict[str, list[CriterionData]]:
    groups: dict[str, list[CriterionData]] = {}
    for criterion in data.criteria:
        groups.setdefault(key(criterion), []).append(criterion)
    return groups


def _dimensions(data: ReportData) -> list[dict[str, Any]]:
    """Return the dimensions in the rubric's order."""
    groups = _grouped(data, lambda criterion: criterion.spec.dimension)
    return [
        {"key": key, **pooled(data, group), "name": group[0].spec.dimension_name}
        for key, group in groups.items()
    ]


def _tiers(data: ReportData) -> list[dict[str, Any]]:
    """Return the tiers in the order of TIERS, unknown ones last."""
    groups = _grouped(data, lambda criterion: criterion.spec.tier)
    order = sorted(groups, key=lambda tier: TIERS.index(tier) if tier in TIERS else len(TIERS))
    return [{"key": tier, **pooled(data, groups[tier])} for tier in order]
