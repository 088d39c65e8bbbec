"""A stored report as it was: who may open it, and how its page, JSON and table show it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse
from django.utils.dateparse import parse_date

from alignment.comparison.queries.requested_scope import narrowed, own_chats
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core.csv_rows import report_lines
from alignment.reports.queries.chat_lists import listed
from alignment.reports.queries.engine_page import engine_parts
from alignment.reports.queries.headline import stored_headline
from alignment.reports.queries.page import scope_query
from alignment.reports.queries.provenance import covered_hash
from alignment.reports.queries.reports import report_pin
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.people import User
from labeling.people.queries.visibility import held_out, reads_holdout


def stored_found(pk: int, *, user: User | AnonymousUser) -> Report | None:
    """The report, where the user may be told its figures; None for rows that do not say what they are of."""
    rows = Report.objects.filter(kind=Report.Kind.REPORT).select_related("run__judge", "chat_set")
    row = rows.filter(pk=pk).first()
    if row is None or "pinned" not in row.body:
        return None
    if row.run_id is not None and not runs_open_to(user).filter(pk=row.run_id).exists():
        return None
    return row if _told(row, user) else None


def scope_of(row: Report) -> Scope:
    """What a stored report is about, as a scope of today."""
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
    """The body as it is stored, without disagreements on chats the user may not see today."""
    rows = row.body["disagreements"]
    allowed = set(listed([pair["chat_id"] for pair in rows], scope_of(row), user))
    shown = [pair for pair in rows if pair["chat_id"] in allowed]
    return {"id": row.pk, "pin": row.pin, **row.body, "disagreements": shown}


def stored_lines(row: Report) -> Iterator[dict[str, Any]]:
    """The rows of its table file."""
    return report_lines(row.body, pin=row.pin)


def stored_page(row: Report) -> dict[str, Any]:
    """The template context: the body with the names it was stored with, and whether it is still current."""
    body, scope = row.body, scope_of(row)
    names = {one["key"]: one for one in body["pinned"]["criteria"]}
    criteria = [entry | {"pinned": names[entry["key"]]} for entry in body["criteria"]]
    return {
        "stored": row,
        "report": body | {"criteria": criteria},
        "pinned": body["pinned"],
        "groups": _groups(body, criteria),
        "pooled": _pooled(body),
        "headline": stored_headline(criteria) if body["judge"] else "",
        "engine_parts": engine_parts(body["engine"]),
        "ground_truth": scope.ground_truth,
        "changed": report_pin(scope) != row.pin,
        "live_url": _live_url(row, scope),
        "notices": body["pinned"]["notices"],
    }


def _told(row: Report, user: User | AnonymousUser) -> bool:
    """Whether a live report would tell the user these figures: decided as of then and as of now.

    A report without the held-out chats of more splits than now is told as well.
    """
    stored, pinned = scope_of(row), row.body["pinned"]
    told = narrowed(replace(stored, without_holdout=frozenset()), user=user)
    if told.kept_whole or (reads_holdout(user=user) and stored.without_holdout and _labels_here(told, user)):
        return False
    if reads_holdout(user=user) or not _holds_out(told):
        return True
    less = told.without_holdout <= stored.without_holdout
    same = (covered_hash(scope) == pinned["chats"] for scope in (told, *([stored] if less else [])))
    return not pinned["for_leads"] and any(same)


def _labels_here(scope: Scope, user: User | AnonymousUser) -> bool:
    return bool(own_chats(scope, user=user).chats)


def _holds_out(scope: Scope) -> bool:
    """Whether any chat of the whole run or set is holdout."""
    whole = Scope(scope.chat_set, scope.run)
    return whole.members.filter(chat__in=held_out()).exists()


def _groups(body: Mapping[str, Any], criteria: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The criteria by dimension, in the order of the report."""
    figures = {row["key"]: row for row in body["dimensions"]}
    return [
        {
            "dimension": figures[key],
            "criteria": [entry for entry in criteria if entry["dimension"] == key],
        }
        for key in dict.fromkeys(entry["dimension"] for entry in criteria)
    ]


def _pooled(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All together, by dimension and by tier."""
    return [
        {"name": "Overall", **body["overall"]},
        *body["dimensions"],
        *({"name": f"Tier {row['key']}", **row} for row in body["tiers"]),
    ]


def _live_url(row: Report, scope: Scope) -> str:
    """The report of the same run or set and part, as it is now."""
    if row.run_id is not None:
        return reverse("alignment:report_run", args=[row.run_id]) + scope_query(scope)
    return reverse("alignment:report_set", args=[row.chat_set_id]) + scope_query(scope)
