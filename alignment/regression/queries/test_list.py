"""List of regression tests and its filters."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from alignment.models.regressions import RegressionTest
from labeling.models.rubric import Criterion

STATES = (
    ("open", "Open"),
    ("pass", "Pass"),
    ("fail", "Fail"),
    ("inconclusive", "Inconclusive"),
    ("cancelled", "Cancelled"),
    ("released", "Released"),
    ("overridden", "Released by override"),
)


@dataclass(frozen=True, slots=True)
class RegressionFilter:
    """Filter of the list; '' means all. A test of a whole judge matches every criterion."""

    criterion: str = ""
    state: str = ""

    @property
    def narrows(self) -> bool:
        """Whether the filter is set."""
        return bool(self.criterion or self.state)


def regression_rows(only: RegressionFilter | None = None) -> QuerySet[RegressionTest]:
    """Return tests with their related rows, newest first; unknown filter values are ignored."""
    rows = RegressionTest.objects.select_related(
        "policy",
        "chat_set",
        "candidate__criterion",
        "baseline_run",
        "candidate_run__judge",
        "created_by",
        "released_by",
    )
    return rows if only is None else rows.filter(_of_criterion(only.criterion), _in_state(only.state))


def regression_filters(only: RegressionFilter) -> list[dict[str, Any]]:
    """Return the filters with their options; one query."""
    criteria = Criterion.objects.order_by("rubric", "dimension__position", "position")
    return [
        _filter("criterion", "Criterion", only.criterion, [(row.key, row.name) for row in criteria]),
        _filter("state", "Status", only.state, list(STATES)),
    ]


def _of_criterion(key: str) -> Q:
    if not key:
        return Q()
    return Q(candidate__criterion__key=key) | Q(candidate=None)


def _in_state(state: str) -> Q:
    if state == "open":
        return Q(state__in=(RegressionTest.State.RUNNING, RegressionTest.State.CONFIRMING))
    if state in RegressionTest.Result.values:
        return Q(result=state)
    known = {
        "cancelled": Q(state=RegressionTest.State.CANCELLED),
        "released": Q(released_at__isnull=False),
        "overridden": Q(overridden=True),
    }
    return known.get(state, Q())


def _filter(name: str, label: str, chosen: str, options: list[tuple[str, str]]) -> dict[str, Any]:
    shown = [("", "all"), *options]
    return {
        "name": name,
        "label": label,
        "options": [{"value": value, "label": text, "selected": value == chosen} for value, text in shown],
    }
