"""A criterion's page: champion, disagreements, versions and next step."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.paginator import Page, Paginator
from django.db.models import Count, F, Q

from alignment.misalignments.queries.misalignment_list import open_disagreement_counts
from alignment.prompts.queries.disagreements import disagreements_of, notices_of
from alignment.prompts.queries.sections import examples_for, sections_of
from alignment.prompts.queries.version_chart import chart_rows, places_of, version_chart
from alignment.prompts.queries.versions import (
    VersionRow,
    champion_of,
    releases_of,
    version_rows,
    waiting_of,
    with_figures,
)
from alignment.prompts.redesign.queries import redesign_proposals
from alignment.regression.queries.holdout_access import holdout_uses
from alignment.reports.queries.run_trend import trend_of_criterion
from evaluation.models.prompts import PromptDraft
from evaluation.prompts.queries.criteria import articles_of
from evaluation.prompts.queries.definitions import older_definitions
from labeling.models.labels import RaterNote
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.people.queries.visibility import accounts_with
from labeling.rating.queries.notes import NoteFilter, note_rows, notes_for
from labeling.rubric.queries.lineage import lineage_of

NOTES_SHOWN = 10
VERSIONS_A_PAGE = 25


def criterion_page(
    *, criterion: Criterion, user: User | AnonymousUser, place: str = "", page: str | None = None
) -> dict[str, Any]:
    """Return the template context; `place` selects the set and split of the chart."""
    rows = _rows(criterion, user, page)
    champion, version = champion_of(rows), criterion.versions.latest("number")
    disagreements = disagreements_of(champion, passes_when=version.passes_when, user=user)
    return {
        "criterion": criterion,
        "version": version,
        "lineage": lineage_of(criterion),
        "people": accounts_with("edit_prompts"),
        "proposals": redesign_proposals(criterion),
        "champion": champion,
        "page_obj": _page(rows, page),
        "waiting": waiting_of(rows),
        "draft": _draft(criterion, user),
        "disagreements": disagreements,
        "worst": max(disagreements, key=lambda one: one.count, default=None),
        "notices": [*_older(criterion, champion, version), *notices_of(disagreements)],
        "misaligned": open_disagreement_counts([criterion], user=user).get(criterion.pk, 0),
        "releases": releases_of(rows),
        "openings": holdout_uses(criteria=[criterion]),
        "articles": articles_of([criterion])[criterion.pk],
        **_line(criterion, chart_rows(rows), place, user),
        **_prompt(champion, user),
        **_unclear(criterion, user),
    }


def _older(criterion: Criterion, champion: VersionRow | None, version: CriterionVersion) -> list[str]:
    """Return a notice with the next step if the champion was written for an older definition."""
    if champion is None:
        return []
    older = older_definitions([champion.prompt], newest={criterion.pk: version})
    if champion.prompt.pk not in older:
        return []
    written = older[champion.prompt.pk].sentence
    return [f"the released version was {written}. Revise and test it, or save it again if it still fits"]


def _rows(criterion: Criterion, user: User | AnonymousUser, page: str | None) -> list[VersionRow]:
    """Return all versions; the champion, this page's and the chart's rows have figures."""
    rows = version_rows(criteria=[criterion])[criterion.pk]
    return with_figures(rows, of=[*_page(rows, page), *chart_rows(rows)], user=user)


def _page(rows: Sequence[VersionRow], page: str | None) -> Page[VersionRow]:
    return Paginator(rows, VERSIONS_A_PAGE).get_page(page)


def _draft(criterion: Criterion, user: User | AnonymousUser) -> PromptDraft | None:
    """Return this author's draft."""
    return PromptDraft.objects.filter(criterion=criterion, author=user.pk).select_related("base").first()


def _line(
    criterion: Criterion, rows: Sequence[VersionRow], place: str, user: User | AnonymousUser
) -> dict[str, Any]:
    """Return the places to choose from, the chosen one, its chart, and the chart over its set's runs."""
    places = places_of(rows)
    chart = version_chart(rows, places, wanted=place)
    chat_set = chart.rows[0][1].run.chat_set if chart.rows else None
    return {
        "places": places,
        "place": chart.place,
        "line": chart.line,
        "line_ceiling": chart.ceiling,
        "trend": trend_of_criterion(criterion, chat_set, user=user),
        "trend_set": chat_set,
    }


# ---------- prompt and notes ----------


def _prompt(champion: VersionRow | None, user: User | AnonymousUser) -> dict[str, Any]:
    if champion is None:
        return {}
    return {"sections": sections_of(champion.prompt), "examples": examples_for(champion.prompt, user=user)}


def _unclear(criterion: Criterion, user: User | AnonymousUser) -> dict[str, Any]:
    """Return the newest notes about unclear points, open ones first, on chats that this user can see."""
    if not user.has_perm("labeling.edit_prompts"):
        return {}
    note_filter = NoteFilter(kind=RaterNote.Kind.UNCLEAR, criterion=criterion.key, state="")
    notes = note_filter.of(notes_for(user=user))
    shown = notes.select_related("chat", "rater", "criterion", "version", "settled_by")
    ordered = shown.order_by(F("settled_at").desc(nulls_first=True), "-pk")
    return {
        "notes": note_rows(list(ordered.defer("chat__messages", "chat__metadata")[:NOTES_SHOWN])),
        **notes.aggregate(open_notes=Count("pk", filter=Q(settled_at=None)), all_notes=Count("pk")),
    }
