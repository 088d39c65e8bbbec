"""Label quality, for leads: raters, pairs, disagreements by criterion, and the team page."""

from typing import Any, cast

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import pluralize

from alignment.rater_quality.queries.answers import scope_labels
from alignment.rater_quality.queries.criteria import criterion_agreements
from alignment.rater_quality.queries.disagreements import disagreement_ids, disagreements
from alignment.rater_quality.queries.pairs import matrix
from alignment.rater_quality.queries.raters import overall_agreement, people_of, rater_rows
from alignment.rater_quality.queries.scope import QualityScope, quality_scope
from alignment.rater_quality.queries.table import HEAD, csv_rows
from common.access import permission_or_404
from common.downloads import table_file
from evaluation.prompts.queries.versions import newest_versions
from labeling.jobs.queries.jobs import job_list, job_rows
from labeling.models.labels import LabelingJob
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit
from labeling.sets.queries import demo_notices, set_rows

RATERS_A_PAGE = 50
JOBS_SHOWN = 6  # newest jobs; the quality list has all
CHATS_A_PAGE = 20
CHATS_TO_DISCUSS = 50

lead_only = permission_or_404("labeling.manage_labeling")


@lead_only
def quality_list(request: HttpRequest) -> HttpResponse:
    """List the sets with labels and the labelling jobs; the finished ones of sample plans by plan."""
    found = job_list(request.GET)
    if found is None:
        raise Http404
    sets = [] if found.plan else [row for row in set_rows(user=request.user) if row.labelled]
    context = {"sets": sets, "list": found, "page_obj": found.page}
    return render(request, "alignment/rater_quality/list.html", context)


@lead_only
def overview(request: HttpRequest, set_id: int | None = None, job_id: int | None = None) -> HttpResponse:
    """Show the raters and the disagreements by criterion."""
    scope = scope_or_404(request, set_id, job_id)
    labels = scope_labels(scope)
    people = people_of(scope, labels)
    page = Paginator(people, RATERS_A_PAGE).get_page(request.GET.get("page"))
    rows = rater_rows(scope, labels, list(page))
    context = _about(scope) | {
        "labels": len(labels.answers),
        "chats": labels.chat_ids.size,
        "raters": labels.rater_ids.size,
        "page_obj": page,
        "rows": rows,
        "everybody": overall_agreement(labels),
        "has_decided": any(row.decided.n for row in rows),
        "has_gold": any(row.gold.n for row in rows),
        "has_trend": any(row.trend for row in rows),
        "has_progress": any(row.progress.submitted or row.progress.skipped for row in rows),
        "criteria": [
            {"row": row, "url": scope.url("criterion", row.criterion.key)}
            for row in criterion_agreements(scope, labels)
        ],
        "jobs": [] if scope.job else job_rows(chat_set=scope.chat_set)[:JOBS_SHOWN],
    }
    return render(request, "alignment/rater_quality/detail.html", context)


@lead_only
def pairs(request: HttpRequest, set_id: int | None = None, job_id: int | None = None) -> HttpResponse:
    """Show the agreement of each pair of raters."""
    scope = scope_or_404(request, set_id, job_id)
    labels = scope_labels(scope)
    shown = matrix(labels, people_of(scope, labels))
    rows = [(person.name, cells) for person, cells in zip(shown.raters, shown.rows, strict=True)]
    return render(
        request, "alignment/rater_quality/pairs.html", _about(scope) | {"matrix": shown, "rows": rows}
    )


@lead_only
def criterion(
    request: HttpRequest, key: str, set_id: int | None = None, job_id: int | None = None
) -> HttpResponse:
    """Show the chats with different labels on one criterion."""
    scope, row = _on_criterion(scope_or_404(request, set_id, job_id), key)
    ids = disagreement_ids(scope, scope_labels(scope), request.user, criterion_id=row.pk)
    page: Page[int] = Paginator(ids, CHATS_A_PAGE).get_page(request.GET.get("page"))
    context = _about(scope.narrowed("")) | _text_of(scope, row)
    context |= {"page_obj": page, "items": disagreements(scope, list(page), criterion_id=row.pk)}
    return render(request, "alignment/rater_quality/criterion.html", context)


@lead_only
def team(request: HttpRequest, set_id: int | None = None, job_id: int | None = None) -> HttpResponse:
    """Show one criterion for a team discussion; criteria in rubric order."""
    whole = scope_or_404(request, set_id, job_id)
    criteria = whole.all_criteria
    if not criteria:
        raise Http404
    scope, row = _on_criterion(whole, whole.only or criteria[0].key)
    labels = scope_labels(scope)
    ids = disagreement_ids(scope, labels, request.user, criterion_id=row.pk)
    place = [one.key for one in criteria].index(row.key)
    context = _about(whole.narrowed("")) | _text_of(scope, row)
    context |= {
        "place": place + 1,
        "criteria": [{"row": one, "url": whole.url("team", criterion=one.key)} for one in criteria],
        "previous_url": whole.url("team", criterion=criteria[place - 1].key) if place else "",
        "next_url": whole.url("team", criterion=criteria[place + 1].key) if place + 1 < len(criteria) else "",
        "agreement": criterion_agreements(scope, labels)[0],
        "disagreements": len(ids),
        "all_url": whole.url("criterion", row.key),
        "items": disagreements(scope, ids[:CHATS_TO_DISCUSS], criterion_id=row.pk),
        "next_jobs": _next_jobs(whole),
    }
    return render(request, "alignment/rater_quality/team.html", context)


@lead_only
def raters_csv(request: HttpRequest, set_id: int | None = None, job_id: int | None = None) -> HttpResponse:
    """Export the raters as CSV."""
    scope = scope_or_404(request, set_id, job_id)
    labels = scope_labels(scope)
    rows = csv_rows(rater_rows(scope, labels, people_of(scope, labels)))
    about = scope.job or scope.chat_set
    audit(actor=cast(User, request.user), verb="raters exported", obj=about, format="csv")
    return table_file(rows, HEAD, name="raters.csv")


def scope_or_404(request: HttpRequest, set_id: int | None, job_id: int | None) -> QualityScope:
    """Return the scope of the request, or raise 404."""
    scope = quality_scope(query=request.GET, set_id=set_id, job_id=job_id)
    if scope is None:
        raise Http404
    return scope


def _on_criterion(scope: QualityScope, key: str) -> tuple[QualityScope, Criterion]:
    row = next((one for one in scope.all_criteria if one.key == key), None)
    if row is None:
        raise Http404
    return scope.narrowed(key), row


def _about(scope: QualityScope) -> dict[str, Any]:
    """Context of every page of a scope: links and filters."""
    return {
        "scope": scope,
        "overview_url": scope.url("overview", criterion=scope.only),
        "pairs_url": scope.url("pairs", criterion=scope.only),
        "team_url": scope.url("team", criterion=scope.only),
        "csv_url": scope.url("raters_csv", criterion=scope.only),
        "json_url": scope.api_url,
        "filters": [_criterion_filter(scope)],
        "notices": [
            *demo_notices(chat_set=scope.chat_set),
            *_carried_notices(scope),
            *(row.words for row in scope.dropped),
        ],
    }


def _carried_notices(scope: QualityScope) -> list[str]:
    labels = scope.carried
    return [f"{labels:,} label{pluralize(labels)} carried over from retired criteria"] if labels else []


def _criterion_filter(scope: QualityScope) -> dict[str, Any]:
    options = [("", "all"), *((row.key, row.name) for row in scope.all_criteria)]
    return {
        "name": "criterion",
        "label": "Criterion",
        "options": [
            {"value": value, "label": label, "selected": value == scope.only} for value, label in options
        ],
    }


def _text_of(scope: QualityScope, row: Criterion) -> dict[str, Any]:
    return {
        "criterion": row,
        "version": newest_versions(criteria=[row])[row.pk],
        "adjudication_query": scope.adjudication_query,
    }


def _next_jobs(scope: QualityScope) -> list[LabelingJob]:
    """Return the jobs that start after this round."""
    if scope.job is None:
        return []
    return list(scope.job.started_after.filter(state=LabelingJob.State.WAITING).order_by("pk"))
