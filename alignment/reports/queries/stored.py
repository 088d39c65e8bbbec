"""Stored reports: who may open one, and its page, JSON and CSV."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse
from django.utils.dateparse import parse_date

from alignment.comparison.queries.requested_scope import own_chats, visible_scope
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core.csv_rows import csv_rows
from alignment.reports.queries.chat_lists import listed
from alignment.reports.queries.engine_page import briefs_table, engine_groups
from alignment.reports.queries.headline import stored_headline
from alignment.reports.queries.page import scope_query
from alignment.reports.queries.provenance import covered_hash
from alignment.reports.queries.reports import report_pin
from common.search.registry import Hit, Query
from evaluation.models.runs import EVALUATIONS, FINISHED
from evaluation.runs.queries.runs import run_in_words, runs_matching, runs_open_to
from labeling.models.people import User
from labeling.people.queries.visibility import holdout_chats, reads_holdout


def readable_report(pk: int, *, user: User | AnonymousUser) -> Report | None:
    """Return the shared report if the user may see its results; None for rows without provenance."""
    rows = Report.objects.filter(kind=Report.Kind.REPORT, shared=True).select_related(
        "run__judge", "chat_set"
    )
    row = rows.filter(pk=pk).first()
    if row is None or "pinned" not in row.body:
        return None
    if row.run_id is not None and not runs_open_to(user).filter(pk=row.run_id).exists():
        return None
    return row if may_see(row, user) else None


def scope_of(row: Report) -> Scope:
    """Return the scope of a stored report."""
    since, until = (parse_date(row.body[name] or "") for name in ("since", "until"))
    return Scope(
        row.chat_set,
        row.run,
        row.split,
        row.against,
        topic=row.body["topic"] or "",
        since=since,
        until=until,
        without_holdout=frozenset(row.body["pinned"]["without_holdout"]),
    )


def stored_json(row: Report, *, user: User | AnonymousUser) -> dict[str, Any]:
    """Return the stored body, without disagreements on chats that the user may not see today."""
    rows = row.body["disagreements"]
    allowed = set(listed([pair["chat_id"] for pair in rows], scope_of(row), user))
    shown = [pair for pair in rows if pair["chat_id"] in allowed]
    return {"id": row.pk, "pin": row.pin, **row.body, "briefs": row.briefs, "disagreements": shown}


def stored_csv_rows(row: Report) -> Iterator[dict[str, Any]]:
    """Return the rows of its CSV."""
    return csv_rows(row.body, pin=row.pin)


def stored_page(row: Report) -> dict[str, Any]:
    """Return the template context: the body with its stored names, and whether it is still current."""
    body, scope = row.body, scope_of(row)
    names = {one["key"]: one for one in body["pinned"]["criteria"]}
    criteria = [entry | {"pinned": names[entry["key"]]} for entry in body["criteria"]]
    return {
        "stored": row,
        "report": body | {"criteria": criteria},
        "pinned": body["pinned"],
        "groups": _groups(body, criteria),
        "pooled": _pooled(body),
        # Reports stored earlier added up the criteria.
        "macro": "criteria_averaged" in body["overall"],
        "not_averaged": [names[key]["name"] for key in body["overall"].get("criteria_left_out") or ()],
        "headline": stored_headline(criteria) if body["judge"] else "",
        "engine_groups": engine_groups(body["engine"]),
        "briefs": briefs_table(row.briefs, {key: one["name"] for key, one in names.items()}),
        "ground_truth": scope.ground_truth,
        "changed": report_pin(scope) != row.pin,
        "live_url": _live_url(row, scope),
        "table_url": reverse("alignment:report_table", args=[row.pk]),
        "export_url": reverse("api_stored_report", args=[row.pk]),
        "query": scope_query(scope),
        "set": row.chat_set,
        "notices": body["pinned"]["notices"],
    }


def may_see(row: Report, user: User | AnonymousUser) -> bool:
    """Return whether a live report would show the user these results, both then and now.

    A report that excludes the holdout of more splits than now is also shown.
    """
    stored, pinned = scope_of(row), row.body["pinned"]
    live = visible_scope(replace(stored, without_holdout=frozenset()), user=user)
    if live.kept_whole or (reads_holdout(user=user) and stored.without_holdout and _labels_here(live, user)):
        return False
    if reads_holdout(user=user) or not _has_holdout(live):
        return True
    excludes_more = live.without_holdout <= stored.without_holdout
    same = (covered_hash(scope) == pinned["chats"] for scope in (live, *([stored] if excludes_more else [])))
    return not pinned["for_leads"] and any(same)


def _labels_here(scope: Scope, user: User | AnonymousUser) -> bool:
    return bool(own_chats(scope, user=user).chats)


def _has_holdout(scope: Scope) -> bool:
    """Return whether any chat of the whole run or set is holdout."""
    whole = Scope(scope.chat_set, scope.run)
    return whole.members.filter(chat__in=holdout_chats()).exists()


def _groups(body: Mapping[str, Any], criteria: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the criteria by dimension, in the order of the report."""
    dimensions = {row["key"]: row for row in body["dimensions"]}
    return [
        {
            "dimension": dimensions[key],
            "criteria": [entry for entry in criteria if entry["dimension"] == key],
        }
        for key in dict.fromkeys(entry["dimension"] for entry in criteria)
    ]


def _pooled(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the overall result, dimensions and tiers."""
    return [
        {"name": "Overall", **body["overall"]},
        *body["dimensions"],
        *({"name": f"Tier {row['key']}", **row} for row in body["tiers"]),
    ]


def _live_url(row: Report, scope: Scope) -> str:
    """Return the address of the live report with the same filters."""
    if row.run_id is not None:
        return reverse("alignment:report_run", args=[row.run_id]) + scope_query(scope)
    return reverse("alignment:report_set", args=[row.chat_set_id]) + scope_query(scope)


def report_hits(query: Query, user: User, limit: int) -> list[Hit]:
    """Return the reports that match: of finished runs, and the stored one with that id."""
    runs = [
        row
        for row in runs_matching(query, user, limit)
        if row.state in FINISHED and row.purpose in EVALUATIONS
    ]
    hits = [
        Hit(f"Report of run {row.pk}", reverse("alignment:report_run", args=[row.pk]), run_in_words(row))
        for row in runs
    ]
    stored = None
    if query.number is not None and user.has_perm("labeling.see_judge"):
        stored = readable_report(query.number, user=user)
    if stored is not None:
        url = reverse("alignment:report_stored", args=[stored.pk])
        hits.insert(
            0, Hit(f"Stored report {stored.pk}", url, stored.chat_set.name if stored.chat_set else "")
        )
    return hits[:limit]
