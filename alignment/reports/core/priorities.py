"""Priorities: the order in which a reader looks at the criteria, worst first."""

from collections.abc import Mapping, Sequence
from typing import Any

from alignment.reports.core.status import Status

MOST = 3  # next steps above a report

Rank = tuple[bool | int | float, ...]


def by_priority(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the criteria of a report's JSON, each with `critical`, in the order to look at them.

    Open criteria come first, then the aligned ones, then those for information only. Among equals critical
    ones come first, then those not aligned, then the worst, undefined last.

    Examples
    --------
    >>> worst = {"tier": "simple", "critical": False, "status": "not_aligned"}
    >>> worst["balanced_accuracy"] = {"value": 0.6}
    >>> best = worst | {"status": "aligned", "balanced_accuracy": {"value": 0.5}}
    >>> by_priority([best, worst]) == [worst, best]
    True
    """
    return sorted(rows, key=priority)


def priority(row: Mapping[str, Any]) -> Rank:
    """Return what sorts a criterion by priority. Without a judge, agreement between raters is its value."""
    balanced = row.get("balanced_accuracy") or row["human"]["krippendorff_alpha"]
    value = balanced["value"] if balanced else None
    few = row["status"] == Status.NOT_ENOUGH_LABELS
    settled = (row["tier"] == "subjective", row["status"] == Status.ALIGNED)
    return (*settled, not row["critical"], few, value is None, value or 0.0)


def first_criteria(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return at most three open criteria by priority.

    Those that are aligned, subjective or without a status are not open.
    """
    return [row for row in by_priority(rows) if _is_open(row)][:MOST]


def _is_open(row: Mapping[str, Any]) -> bool:
    return row["tier"] != "subjective" and row["status"] not in (None, Status.ALIGNED)
