"""A criterion's report as its page shows it: figures in rows, links, drawings."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.comparison.queries.run_choice import carried
from alignment.comparison.queries.scope import Scope
from alignment.criterion_report.core import diagram
from alignment.criterion_report.core.parts import FEW
from alignment.criterion_report.core.people import RATERS_SHOWN
from alignment.criterion_report.queries.report import CriterionReport
from alignment.reports.queries.next_steps import plan_url
from alignment.reports.queries.page import (
    criterion_rows,
    is_demo,
    notices,
    question_notices,
    scope_filters,
    scope_query,
)
from alignment.statistics.alt_test import MINIMUM_CHATS
from labeling.models.people import User

TOPICS_SHOWN = 40
VERY_FEW = 10  # compared chats, below which topics are folded into one line
STATISTICS = (
    ("balanced_accuracy", "Balanced accuracy"),
    ("tpr", "TPR: of people’s True"),
    ("tnr", "TNR: of people’s False"),
    ("gwet_ac1", "Gwet’s AC1"),
    ("kappa", "Cohen’s κ"),
    ("accuracy", "Accuracy"),
    ("precision", "Precision"),
    ("f1", "F1"),
    ("mcc", "MCC"),
    ("pabak", "PABAK"),
)
OF_PEOPLE = (
    ("human.ceiling", "Human ceiling"),
    ("human.krippendorff_alpha", "Krippendorff’s α"),
    ("human.gwet_ac1", "Gwet’s AC1"),
    ("human.fleiss_kappa", "Fleiss’ κ"),
    ("human.percent_agreement", "Agreeing pairs"),
)


def criterion_report_page(
    found: CriterionReport, scope: Scope, *, user: User | AnonymousUser
) -> dict[str, Any]:
    """The template context."""
    document, people = found.document, found.document["people"]
    (criterion,) = criterion_rows({"criteria": [document["criterion"]]}, scope, user=user)
    query = scope_query(scope)
    args = [document["run"], found.criterion.key]
    return {
        "document": document,
        "c": criterion,
        "run": scope.run,
        "statistics": _rows(criterion, STATISTICS),
        "people_statistics": _rows(criterion, OF_PEOPLE),
        "few": FEW,
        **_topics(document["topics"] or []),
        "lengths": document["messages"],
        "pairs": _symmetric(people),
        "raters_left_out": max(0, people["total"] - RATERS_SHOWN) if people else 0,
        "quality_url": scope.chat_set and reverse("quality:set_overview", args=[scope.chat_set.pk]),
        "stand_in_chats": MINIMUM_CHATS,
        "reliability": _reliability(document["probabilities"]),
        "drawn": found.versions,
        "ground_truth": scope.ground_truth,
        "notices": [*notices(scope), *question_notices([criterion])],
        "is_demo": is_demo(scope),
        "filters": [*scope_filters(scope), *carried(scope.choice)],
        "report_url": reverse("alignment:report_run", args=args[:1]) + query,
        "plan_url": plan_url(scope, found.criterion.key),
        "json_url": reverse("api_criterion_report", args=args) + query,
    }


def _topics(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Those shown, most chats first; those on very few chats apart."""
    shown = parts[:TOPICS_SHOWN]
    return {
        "topics": [part for part in shown if part["n"] >= VERY_FEW],
        "small_topics": [part for part in shown if part["n"] < VERY_FEW],
        "very_few": VERY_FEW,
        "topics_shown": len(shown),
        "topics_left_out": len(parts) - len(shown),
    }


def _rows(criterion: Mapping[str, Any], named: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    """Each statistic with what has to be said of it in words."""
    return [
        {
            "path": path,
            "name": name,
            "why": criterion["undefined"].get(path) or criterion["undefined"].get(f"{path}.interval", ""),
        }
        for path, name in named
    ]


def _symmetric(people: Mapping[str, Any] | None) -> list[tuple[str, list[Any]]]:
    """The pairs as lines of a table, a rater a line; empty for who is not told of single raters."""
    if people is None or not people["pairs"]:
        return []
    names = [row["rater"] for row in people["raters"]]
    found = {frozenset(pair["raters"]): pair for pair in people["pairs"]}
    return [(name, [found.get(frozenset((name, other))) for other in names]) for name in names]


def _reliability(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """With its drawing; None where the judge stated no probability."""
    if found is None or not found["n"]:
        return None
    return {**found, "diagram": diagram(found["bins"]) if found["bins"] else None}
