"""Priorities: the criteria that a lead looks at first."""

from collections.abc import Mapping, Sequence
from typing import Any

from alignment.reports.core.status import Status

FEWEST = 3  # criteria shown if as many are open


def first_criteria(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the open criteria that are critical, and the worst others, at least three if there are as many.

    Parameters
    ----------
    rows : criteria of a report's JSON, each with `critical`. Those that are aligned, subjective or without a
        status are not open.

    Returns
    -------
    list : critical criteria first; among equals those not aligned, then by balanced accuracy, undefined last.

    Examples
    --------
    >>> worst = {"tier": "simple", "critical": False, "status": "not_aligned"}
    >>> worst["balanced_accuracy"] = {"value": 0.6}
    >>> best = worst | {"status": "aligned", "balanced_accuracy": {"value": 0.9}}
    >>> len(first_criteria([worst, best]))
    1
    """
    ordered = sorted((row for row in rows if _is_open(row)), key=_rank)
    critical = sum(row["critical"] for row in ordered)
    return ordered[: max(FEWEST, critical)]


def _is_open(row: Mapping[str, Any]) -> bool:
    return row["tier"] != "subjective" and row["status"] not in (None, Status.ALIGNED)


def _rank(row: Mapping[str, Any]) -> tuple[bool, bool, bool, float]:
    value = row["balanced_accuracy"]["value"]
    few = row["status"] == Status.NOT_ENOUGH_LABELS
    return not row["critical"], few, value is None, value or 0.0
