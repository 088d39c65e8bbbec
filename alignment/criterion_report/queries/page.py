"""The template context of a criterion report."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.comparison.queries.run_choice import hidden_filters
from alignment.comparison.queries.scope import Scope
from alignment.criterion_report.core import diagram
from alignment.criterion_report.core.parts import FEW
from alignment.criterion_report.core.raters import RATERS_SHOWN
from alignment.criterion_report.queries.report import CriterionReport
from alignment.reports.core.registry import Table, columns
from alignment.reports.core.run_trend import RunTrend
from alignment.reports.queries.next_steps import plan_url
from alignment.reports.queries.page import (
    criterion_rows,
    is_demo,
    notices,
    question_notices,
    scope_filters,
    scope_query,
)
from alignment.reports.queries.run_trend import trend_of_criterion
from alignment.reports.queries.verdict_notices import verdict_notices
from alignment.statistics.alt_test import MINIMUM_CHATS
from labeling.models.people import User

TOPICS_SHOWN = 40
VERY_FEW = 10  # compared chats; topics with fewer are folded into one line


def criterion_report_page(
    report: CriterionReport, scope: Scope, *, user: User | AnonymousUser
) -> dict[str, Any]:
    """Return the template context."""
    document, raters = report.document, report.document["people"]
    (criterion,) = criterion_rows({"criteria": [document["criterion"]]}, scope, user=user)
    query = scope_query(scope)
    args = [document["run"], report.criterion.key]
    return {
        "document": document,
        "c": criterion,
        "run": scope.run,
        "statistics": _rows(criterion, Table.CRITERION_JUDGE),
        "rater_statistics": _rows(criterion, Table.CRITERION_RATERS),
        "few": FEW,
        **_topics(document["topics"] or []),
        "lengths": document["messages"],
        "pairs": _symmetric(raters),
        "raters_hidden": max(0, raters["total"] - RATERS_SHOWN) if raters else 0,
        "quality_url": scope.chat_set and reverse("quality:set_overview", args=[scope.chat_set.pk]),
        "replacement_chats": MINIMUM_CHATS,
        "calibration": _calibration(document["probabilities"]),
        "versions": report.versions,
        "trend": _trend(report, scope, user),
        "ground_truth": scope.ground_truth,
        "notices": [
            *notices(scope),
            *verdict_notices([criterion], scope, chats=document["chats"]),
            *question_notices([criterion]),
        ],
        "is_demo": is_demo(scope),
        "filters": [*scope_filters(scope), *hidden_filters(scope.choice)],
        "report_url": reverse("alignment:report_run", args=args[:1]) + query,
        "plan_url": plan_url(scope, report.criterion.key),
        "export_url": reverse("api_criterion_report", args=args) + query,
        "query": query,
        "set": scope.chat_set,
    }


def _trend(report: CriterionReport, scope: Scope, user: User | AnonymousUser) -> RunTrend | None:
    """Return the chart over the set's runs; None on a page with filters, whose figures differ."""
    if not scope.is_unfiltered:
        return None
    return trend_of_criterion(report.criterion, scope.chat_set, user=user, current=scope.run)


def _topics(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the topics shown, most chats first; those with very few chats separately."""
    shown = parts[:TOPICS_SHOWN]
    return {
        "topics": [part for part in shown if part["n"] >= VERY_FEW],
        "small_topics": [part for part in shown if part["n"] < VERY_FEW],
        "very_few": VERY_FEW,
        "topics_shown": len(shown),
        "topics_hidden": len(parts) - len(shown),
    }


def _rows(criterion: Mapping[str, Any], table: Table) -> list[dict[str, Any]]:
    """Return the statistics of a table, each with the reason if value or interval are undefined."""
    undefined = criterion["undefined"]
    return [
        {"statistic": one, "reason": undefined.get(one.key) or undefined.get(f"{one.key}.interval", "")}
        for one in columns(table)
    ]


def _symmetric(raters: Mapping[str, Any] | None) -> list[tuple[str, list[Any]]]:
    """Return the pairs as rows, one a rater; empty for users who see no single raters."""
    if raters is None or not raters["pairs"]:
        return []
    names = [row["rater"] for row in raters["raters"]]
    pairs = {frozenset(pair["raters"]): pair for pair in raters["pairs"]}
    return [(name, [pairs.get(frozenset((name, other))) for other in names]) for name in names]


def _calibration(probabilities: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the calibration with its diagram; None if the judge stated no probability."""
    if probabilities is None or not probabilities["n"]:
        return None
    bins = probabilities["bins"]
    return {**probabilities, "diagram": diagram(bins) if bins else None}
