"""The template context of a report's page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef
from django.urls import reverse

from alignment.comparison.core.codes import CONSENSUS, EACH_RATER
from alignment.comparison.core.outcomes import CELL_ANSWERS, cell_outcome
from alignment.comparison.queries.filters import chosen_filter, day_filter
from alignment.comparison.queries.notices import scope_notices
from alignment.comparison.queries.run_choice import RunChoice, other_runs, run_filters, run_options
from alignment.comparison.queries.scope import Scope
from alignment.comparison.queries.scope_summary import scope_summary
from alignment.reports.queries.brief_effect import is_debate
from alignment.reports.queries.chat_lists import AGREE, DISAGREEMENTS, OPEN_CODES
from alignment.reports.queries.empty_states import report_state
from alignment.reports.queries.engine_page import briefs_table, engine_groups
from alignment.reports.queries.headline import headline
from alignment.reports.queries.knowledge_gaps import knowledge_mode
from alignment.reports.queries.label_minimums import label_minimums
from alignment.reports.queries.next_steps import next_steps, plan_url
from alignment.reports.queries.report_table import report_table
from alignment.reports.queries.reports import POLICY
from alignment.reports.queries.run_trend import trend_of_runs
from alignment.reports.queries.verdict_notices import verdict_notices
from evaluation.prompts.queries.versions import newest_versions
from labeling.consensus.core.dropped import DroppedLabels
from labeling.models.chats import Split, Topic
from labeling.models.people import User

CELLS = (*CELL_ANSWERS, *OPEN_CODES)
KEPT_WHOLE = "filters are off, and the whole report is shown, until you have labelled your own chats in it"
# The list stays short; the address takes any rater.
RATERS_OFFERED = 30


def report_page(
    report: dict[str, Any], scope: Scope, *, user: User | AnonymousUser, query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the template context of a report's page.

    Parameters
    ----------
    report : the report's JSON.
    scope : the run or set, and the filters.
    user : the reader.
    query : the query string, for tab, order and filters of the rows.
    """
    criteria = criterion_rows(report, scope, user=user)
    offered = run_options(scope.chat_set.pk if scope.chat_set else None, user=user, shown=scope.run)
    whole = scope_query(replace(scope, split="", topic="", since=None, until=None)) or "."
    of_runs = run_filters(scope.choice, shown=scope.run, chat_set=scope.chat_set, offered=offered)
    filters = [*of_runs, *scope_filters(scope)]
    return {
        "report": report | {"criteria": criteria},
        "not_averaged": _not_averaged(report, scope),
        **report_table(report, criteria, query, base=scope_query(scope)),
        "engine_groups": engine_groups(report["engine"]),
        "briefs": briefs_table(report["briefs"], {row["key"]: row["name"] for row in criteria}),
        "debates": is_debate(scope),
        "policy_note": policy_note(),
        "ground_truth": scope.ground_truth,
        "headline": headline(criteria, judged=report["judge"] is not None, chats=report["chats"]),
        "run": scope.run,
        "set": scope.chat_set,
        "notices": [
            *notices(scope),
            *verdict_notices(criteria, scope, chats=report["chats"]),
            *question_notices(criteria),
            *dropped_notices(criteria),
        ],
        "is_demo": is_demo(scope),
        "query": scope_query(scope),
        "filters": filters,
        "scope_words": scope_words(filters),
        "trend": trend_of_runs(scope, offered, user=user),
        "others": other_runs(offered, shown=scope.run, query=_of_any_run(scope)) if scope.chat_set else [],
        "empty_state": report_state(report, scope, whole_url=whole, judged=bool(offered.runs), user=user),
        "export_url": _export_url(scope),
        "disagreements_url": _disagreements_url(scope),
        "gaps_url": _gaps_url(scope),
        "league_url": reverse("alignment:league", args=[scope.chat_set.pk]) if scope.chat_set else "",
        "plan_url": plan_url(scope),
    }


def _not_averaged(report: Mapping[str, Any], scope: Scope) -> list[str]:
    """Return the names of the criteria that balanced accuracy does not average."""
    names = {row.key: row.name for row in scope.criteria}
    return [names[key] for key in report["overall"]["criteria_left_out"] or ()]


def cell_title(cell: str, *, passes_when: bool) -> str:
    """Return the title of a cell by what it means for the bot.

    >>> cell_title("fn", passes_when=True)
    'false alarm: judge failed, raters passed'
    >>> cell_title("open_true", passes_when=False)
    'raters failed, judge without True or False'
    """
    if cell == DISAGREEMENTS:
        return cell
    if cell in OPEN_CODES:
        raters = "passed" if (cell == "open_true") is passes_when else "failed"
        return f"raters {raters}, judge without True or False"
    caption = cell_outcome(cell, passes_when=passes_when).caption
    return caption.name if cell in AGREE else f"{caption.name}: {caption.meaning}"


def notices(scope: Scope) -> list[str]:
    """Return the notices about these labels and verdicts, and about the filters."""
    return scope_notices(scope) + ([KEPT_WHOLE] if scope.kept_whole else [])


def question_notices(criteria: list[dict[str, Any]]) -> list[str]:
    """Return a notice if labels and judge answer different questions on some criteria."""
    number = sum(bool(row["questions"]["words"]) for row in criteria)
    if not number:
        return []
    criteria_words = "1 criterion" if number == 1 else f"{number} criteria"
    return [f"labels and judge answer different versions of the question on {criteria_words}"]


def dropped_notices(criteria: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a notice for each criterion with labels that no longer count."""
    return [
        DroppedLabels(row["key"], **row["dropped_labels"]).words
        for row in criteria
        if row.get("dropped_labels")
    ]


def is_demo(scope: Scope) -> bool:
    """Return whether the report covers chats written for the demo."""
    return scope_summary(scope).demo


def policy_note() -> str:
    """Return the conditions of the status "aligned"."""
    policy = POLICY
    return (
        f"Aligned: TPR and TNR at least {policy.minimum_rate:.2f}, both lower bounds at least "
        f"{policy.minimum_rate_low:.2f}, and the lower bound of balanced accuracy above "
        f"{policy.balanced_low_above:.2f}, with {policy.minimum_true} or more human True and "
        f"{policy.minimum_false} or more human False labels. The judge abstains on at most "
        f"{policy.largest_abstention:.0%} of either; above {policy.cautioned_abstention:.0%} abstentions "
        f"count as wrong for TPR and TNR. At most {policy.largest_unresolved:.0%} of the labelled chats are "
        f"unresolved, and the raters agree with each other ({policy.label})."
    )


def scope_query(scope: Scope, *, start: str = "?") -> str:
    """Return the filters as a query string; `start` is "&" after another parameter."""
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
    """Return the filters without those that choose a run."""
    return scope_query(replace(scope, choice=RunChoice()))


def criterion_rows(
    report: Mapping[str, Any], scope: Scope, *, user: User | AnonymousUser
) -> list[dict[str, Any]]:
    """Return the report's criteria with names, links and next steps, in a constant number of queries."""
    rows = {row.key: row for row in scope.criteria}
    versions, minimums = newest_versions(criteria=scope.criteria), label_minimums()
    return [
        entry
        | {
            "name": rows[entry["key"]].name,
            "question": versions[rows[entry["key"]].pk].question,
            "critical": rows[entry["key"]].critical,
            "url": reverse("alignment:criterion_detail", args=[entry["key"]]),
            "report_url": _criterion_report_url(entry["key"], scope),
            "texts_url": reverse("labeling:criterion_text", args=[entry["key"]]),
            "cells": _cells(entry["key"], scope),
            "next_steps": next_steps(entry, scope, user=user, minimums=minimums),
            "other_no_verdict": _other_no_verdict(entry),
        }
        for entry in report["criteria"]
    ]


def _other_no_verdict(entry: Mapping[str, Any]) -> int:
    """Count chats without a verdict for reasons other than an unparsed or refused answer."""
    by_state = entry["no_verdict_by"] or {}
    return int(entry["no_verdict"] or 0) - int(by_state.get("unparsed", 0)) - int(by_state.get("refused", 0))


def _criterion_report_url(key: str, scope: Scope) -> str:
    if scope.run is None:
        return reverse("alignment:criterion_detail", args=[key])
    return reverse("alignment:criterion_report", args=[scope.run.pk, key]) + scope_query(scope)


def _cells(key: str, scope: Scope) -> dict[str, str]:
    if scope.run is None:
        return {}
    query = scope_query(scope)
    # One look-up of the address for all cells: a report has 240 of them.
    matrix = reverse("alignment:cell", args=[scope.run.pk, key, CELLS[0]]).removesuffix(f"{CELLS[0]}/")
    cells = CELLS if scope.each_rater else (*CELLS, DISAGREEMENTS)
    return {cell: f"{matrix}{cell}/{query}" for cell in cells}


def scope_words(filters: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what the filters choose, in the order of the page; what does not narrow is left out."""
    words = []
    for one in filters:
        if one["name"] in ("set", "run"):
            continue  # these stand before the others
        if day := one.get("day"):
            words.append(f"{one['label'].removeprefix('Chats ')} {day:%-d %b %Y}")
        for option in one.get("options", ()):
            if option["selected"] and (option["value"] or one["name"] == "split"):
                words.append(option["label"] if option["value"] else "all splits")
    return words


def scope_filters(scope: Scope) -> list[dict[str, Any]]:
    """Return the filters of chats, and with a judge the ground truth."""
    return [
        chosen_filter("split", scope.split, _splits(scope)),
        *([] if scope.run is None else [_ground_truths(scope)]),
        chosen_filter("topic", scope.topic, _topics(scope)),
        day_filter("since", scope.since),
        day_filter("until", scope.until),
    ]


def _ground_truths(scope: Scope) -> dict[str, Any]:
    """Return the filter of the ground truth."""
    raters = [
        (f"rater:{rater.name}", rater.name) for rater in scope_summary(scope).rater_rows[:RATERS_OFFERED]
    ]
    options = [(CONSENSUS, "Consensus"), (EACH_RATER, "Each rater, averaged"), *raters]
    return chosen_filter("against", scope.against, options)


def _splits(scope: Scope) -> list[tuple[str, str]]:
    """Return the splits with chats, and the chosen one; one query."""
    whole = replace(scope, split="", topic="", since=None, until=None)
    present = {scope.split, *whole.members.order_by().values_list("split", flat=True).distinct()}
    return [(value, value) for value in Split.values if value in present]


def _topics(scope: Scope) -> list[tuple[str, str]]:
    """Return key and name of the topics of the run or set."""
    whole = replace(scope, split="", topic="", since=None, until=None)
    rows = Topic.objects.filter(Exists(whole.members.filter(chat__topic=OuterRef("pk"))))
    return [(row.key, row.name) for row in rows.order_by("name", "key")]


def _disagreements_url(scope: Scope) -> str:
    if scope.run is None:
        return ""
    return reverse("alignment:disagreements", args=[scope.run.pk]) + scope_query(scope)


def _gaps_url(scope: Scope) -> str:
    """Return the address of the knowledge gaps; '' if the judge reads no knowledge."""
    if scope.run is None or not knowledge_mode(scope.run):
        return ""
    return reverse("alignment:knowledge_gaps", args=[scope.run.pk]) + scope_query(scope)


def _export_url(scope: Scope) -> str:
    query = _of_any_run(scope)
    if scope.run is not None:
        return reverse("api_run_report", args=[scope.run.pk]) + query
    return reverse("api_set_report", args=[scope.chat_set.pk]) + query if scope.chat_set else ""
