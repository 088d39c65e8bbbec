"""Marks on charts: a CUSUM of whole weeks against the frozen baseline, one night at a time."""

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from alignment.alerts.core.rate_cusum import FEWEST_CHATS
from alignment.statistics.cusum import ALLOWANCE, LIMIT

Json = dict[str, Any]


def mark_night(
    cusum: Mapping[str, Any],
    day: date,
    strata: Sequence[tuple[int, int, float]],
    *,
    rate: float | None,
    limit: float = LIMIT,
) -> tuple[Json, tuple[date, float, bool] | None]:
    """Add a night to its week; the first night of another week ends the week before.

    Parameters
    ----------
    cusum : {} at the start. strata : passed, answers and weight by topic.
    rate : the baseline; None: not frozen yet, and a constant rate of 0 or 1 has no standard error: no sum.

    Returns
    -------
    The new state; and of a week that ended its Monday, the sum and whether it is above the limit, else None.

    Examples
    --------
    >>> cusum, none = mark_night({}, date(2026, 11, 2), [(160, 200, 1.0)], rate=0.9)
    >>> cusum, ended = mark_night(cusum, date(2026, 11, 9), [(180, 200, 1.0)], rate=0.9)
    >>> ended[0].isoformat(), round(ended[1], 2), ended[2]
    ('2026-11-02', 4.21, True)
    """
    if rate is None or not 0 < rate < 1:
        return {}, None
    week = (day - timedelta(days=day.weekday())).isoformat()
    ended = None
    now = dict(cusum) or {"week": week, "passed": 0.0, "weighted": 0.0, "answers": 0, "sum": 0.0}
    if now["week"] != week:
        total = _added(now, rate)
        ended = (date.fromisoformat(now["week"]), total, total > limit)
        now = {"week": week, "passed": 0.0, "weighted": 0.0, "answers": 0, "sum": total}
    now["passed"] += sum(passed * weight for passed, _, weight in strata)
    now["weighted"] += sum(answers * weight for _, answers, weight in strata)
    now["answers"] += sum(answers for _, answers, _ in strata)
    return now, ended


def _added(week: Mapping[str, Any], rate: float) -> float:
    """The sum after this week; a week with fewer than 30 chats leaves it unchanged."""
    if week["answers"] < FEWEST_CHATS:
        return float(week["sum"])
    score = (week["passed"] / week["weighted"] - rate) / math.sqrt(rate * (1 - rate) / week["answers"])
    return float(max(0.0, week["sum"] - score - ALLOWANCE))
