"""A criterion's report as its page shows it: figures in rows, links, drawings."""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from alignment.core.criterion_report import diagram
from alignment.core.criterion_report.parts import FEW
from alignment.core.criterion_report.people import RATERS_SHOWN
from alignment.core.replacement import MINIMUM_CHATS
from alignment.selectors.criterion_report import CriterionReport
from alignment.selectors.report_page import report_page, scope_query
from alignment.selectors.scope import Scope

TOPICS_SHOWN = 40
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


def criterion_report_page(found: CriterionReport, scope: Scope) -> dict[str, Any]:
    """The template context."""
    document, people = found.document, found.document["people"]
    whole = report_page(_as_report(document), scope)
    (criterion,) = whole["report"]["criteria"]
    query = scope_query(scope)
    args = [document["run"], found.criterion.key]
    return {
        "document": document,
        "c": criterion,
        "run": scope.run,
        "statistics": _rows(criterion, STATISTICS),
        "people_statistics": _rows(criterion, OF_PEOPLE),
        "few": FEW,
        "topics_left_out": max(0, len(document["topics"] or ()) - TOPICS_SHOWN),
        "topics": (document["topics"] or [])[:TOPICS_SHOWN],
        "lengths": document["messages"],
        "pairs": _symmetric(people),
        "raters_left_out": max(0, people["total"] - RATERS_SHOWN) if people else 0,
        "stand_in_chats": MINIMUM_CHATS,
        "reliability": _reliability(document["probabilities"]),
        "drawn": found.versions,
        "ground_truth": scope.ground_truth,
        "notices": whole["notices"],
        "is_demo": whole["is_demo"],
        "filters": whole["filters"],
        "report_url": reverse("alignment:report_run", args=args[:1]) + query,
        "json_url": reverse("api_criterion_report", args=args) + query,
    }


def _as_report(document: Mapping[str, Any]) -> dict[str, Any]:
    """As the report's page takes it, with this one criterion."""
    return {**document, "criteria": [document["criterion"]], "dimensions": [], "engine": None}


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
