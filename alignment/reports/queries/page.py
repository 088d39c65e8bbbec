"""A report as its page shows it: names, groups, links, the sentence on top."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef
from django.urls import reverse
from django.utils.text import capfirst

from alignment.comparison.core.codes import CONSENSUS, EACH_RATER
from alignment.comparison.queries.filters import select_filter
from alignment.comparison.queries.notices import scope_notices
from alignment.comparison.queries.run_choice import RunChoice, other_runs, run_filters, runs_offered
from alignment.comparison.queries.scope import Scope
from alignment.comparison.queries.scope_summary import covered
from alignment.reports.queries.empty_states import report_state
from alignment.reports.queries.engine_page import engine_parts
from alignment.reports.queries.headline import headline
from alignment.reports.queries.knowledge_gaps import knowledge_mode
from alignment.reports.queries.next_steps import next_steps, plan_url
from alignment.reports.queries.reports import POLICY
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.chats import Split, Topic
from labeling.models.people import User

CELLS = {
    "tp": "both say True",
    "fn": "people say True, the judge False",
    "fp": "people say False, the judge True",
    "tn": "both say False",
    "open_true": "people say True, the judge neither",
    "open_false": "people say False, the judge neither",
}
KEPT_WHOLE = "the whole report is shown: while chats of it are yours to label, parts are not"
# A list of hundreds of raters is no choice; the address still takes any of them.
RATERS_OFFERED = 30


def report_page(report: dict[str, Any], scope: Scope, *, user: User | AnonymousUser) -> dict[str, Any]:
    """The template context of a report's page.

    Parameters
    ----------
    report : the report's JSON.
    scope : what it is about.
    user : who reads it.
    """
    criteria = criterion_rows(report, scope, user=user)
    offered = runs_offered(scope.chat_set.pk if scope.chat_set else None, user=user, shown=scope.run)
    whole = scope_query(replace(scope, split="", topic="", since=None, until=None))
    return {
        "report": report | {"criteria": criteria},
        "groups": _groups(report, criteria),
        "engine_parts": engine_parts(report["engine"]),
        "policy_note": policy_note(),
        "ground_truth": scope.ground_truth,
        "headline": headline(criteria, judged=report["judge"] is not None, chats=report["chats"]),
        "run": scope.run,
        "set": scope.chat_set,
        "notices": [*notices(scope), *question_notices(criteria)],
        "is_demo": is_demo(scope),
        "query": scope_query(scope),
        "filters": [
            *run_filters(scope.choice, shown=scope.run, chat_set=scope.chat_set, offered=offered),
            *scope_filters(scope),
        ],
        "others": other_runs(offered, shown=scope.run, query=_of_any_run(scope)) if scope.chat_set else [],
        "told": report_state(report, scope, whole_url=whole or ".", judged=bool(offered.runs), user=user),
        "export_url": _export_url(scope),
        "disagreements_url": _disagreements_url(scope),
        "gaps_url": _gaps_url(scope),
        "league_url": reverse("alignment:league", args=[scope.chat_set.pk]) if scope.chat_set else "",
        "plan_url": plan_url(scope),
    }


def notices(scope: Scope) -> list[str]:
    """What has to be said of these labels and verdicts, and of what the user asked for."""
    return scope_notices(scope) + ([KEPT_WHOLE] if scope.kept_whole else [])


def question_notices(criteria: list[dict[str, Any]]) -> list[str]:
    """That figures below compare answers to different texts; each criterion says which."""
    number = sum(bool(row["questions"]["words"]) for row in criteria)
    if not number:
        return []
    return [f"on {number} criteri{'on' if number == 1 else 'a'} not all answers are to the same text"]


def is_demo(scope: Scope) -> bool:
    """Whether chats written for the demo are covered."""
    return covered(scope).demo


def policy_note() -> str:
    """What "aligned" asks for, in a sentence."""
    policy = POLICY
    return (
        f"Aligned: TPR and TNR at least {policy.minimum_rate:.2f}, both lower bounds at least "
        f"{policy.minimum_rate_low:.2f}, and the lower bound of balanced accuracy above "
        f"{policy.balanced_low_above:.2f}, with {policy.minimum_true} or more human True and "
        f"{policy.minimum_false} or more human False answers, of which the judge left at most "
        f"{policy.largest_silent:.0%} open ({policy.label})."
    )


def scope_query(scope: Scope, *, start: str = "?") -> str:
    """What keeps the filters from page to page; `start` is "&" behind another parameter."""
    chosen = {
        "split": scope.split,
        "against": scope.against if scope.against != "consensus" else "",
        "topic": scope.topic,
        "since": scope.since,
        "until": scope.until,
        "engine": scope.choice.engine,
        "version": scope.choice.version,
    }
    text = urlencode({name: value for name, value in chosen.items() if value})
    return f"{start}{text}" if text else ""


def _of_any_run(scope: Scope) -> str:
    """The filters that say nothing of the run."""
    return scope_query(replace(scope, choice=RunChoice()))


def criterion_rows(
    report: Mapping[str, Any], scope: Scope, *, user: User | AnonymousUser
) -> list[dict[str, Any]]:
    """The report's criteria with names, links and next steps; the number of queries is constant."""
    rows = {row.key: row for row in scope.criteria}
    versions = newest_versions(criteria=scope.criteria)
    return [
        entry
        | {
            "name": rows[entry["key"]].name,
            "question": versions[rows[entry["key"]].pk].question,
            "critical": rows[entry["key"]].critical,
            "url": reverse("alignment:criterion_detail", args=[entry["key"]]),
            "texts_url": reverse("labeling:criterion_text", args=[entry["key"]]),
            "cells": _cells(entry["key"], scope),
            "next_steps": next_steps(entry, scope, user=user),
            "other_silent": _other_silent(entry),
        }
        for entry in report["criteria"]
    ]


def _other_silent(entry: Mapping[str, Any]) -> int:
    """Chats without a verdict for another reason than an unparsed or refused answer."""
    named = entry["no_verdict_by"] or {}
    return int(entry["no_verdict"] or 0) - int(named.get("unparsed", 0)) - int(named.get("refused", 0))


def _cells(key: str, scope: Scope) -> dict[str, str]:
    if scope.run is None:
        return {}
    query = scope_query(scope)
    return {cell: reverse("alignment:cell", args=[scope.run.pk, key, cell]) + query for cell in CELLS}


def _groups(report: Mapping[str, Any], criteria: list[dict[str, Any]]) -> list[dict[str, Any]]:
    figures = {row["key"]: row for row in report["dimensions"]}
    names = {row["dimension"]: row for row in criteria}
    return [
        {
            "dimension": {"key": key, "name": capfirst(key.replace("_", " "))} | figures.get(key, {}),
            "criteria": [row for row in criteria if row["dimension"] == key],
        }
        for key in names
    ]


def scope_filters(scope: Scope) -> list[dict[str, Any]]:
    """What narrows the chats, and with a judge names the ground truth."""
    return [
        select_filter("split", "Split", [("", "all"), *_splits(scope)], scope.split),
        *([] if scope.run is None else [_people(scope)]),
        select_filter("topic", "Topic", [("", "all"), *_topics(scope)], scope.topic),
        {"name": "since", "label": "Chats since", "day": scope.since},
        {"name": "until", "label": "Chats until", "day": scope.until},
    ]


def _people(scope: Scope) -> dict[str, Any]:
    """Whom the judge may be compared with."""
    raters = [(f"rater:{rater.name}", rater.name) for rater in covered(scope).people[:RATERS_OFFERED]]
    known = [(CONSENSUS, "Consensus"), (EACH_RATER, "Each rater, averaged"), *raters]
    return select_filter("against", "Ground truth", known, scope.against)


def _splits(scope: Scope) -> list[tuple[str, str]]:
    """The splits that the run or set has chats in, and what is asked for; one query."""
    whole = replace(scope, split="", topic="", since=None, until=None)
    found = {scope.split, *whole.members.order_by().values_list("split", flat=True).distinct()}
    return [(value, value) for value in Split.values if value in found]


def _topics(scope: Scope) -> list[tuple[str, str]]:
    """Key and name of the topics that the run or set covers."""
    whole = replace(scope, split="", topic="", since=None, until=None)
    rows = Topic.objects.filter(Exists(whole.members.filter(chat__topic=OuterRef("pk"))))
    return [(row.key, row.name) for row in rows.order_by("name", "key")]


def _disagreements_url(scope: Scope) -> str:
    if scope.run is None:
        return ""
    return reverse("alignment:disagreements", args=[scope.run.pk]) + scope_query(scope)


def _gaps_url(scope: Scope) -> str:
    """For judges that read knowledge only."""
    if scope.run is None or not knowledge_mode(scope.run):
        return ""
    return reverse("alignment:knowledge_gaps", args=[scope.run.pk]) + scope_query(scope)


def _export_url(scope: Scope) -> str:
    query = _of_any_run(scope)
    if scope.run is not None:
        return reverse("api_run_report", args=[scope.run.pk]) + query
    return reverse("api_set_report", args=[scope.chat_set.pk]) + query if scope.chat_set else ""
