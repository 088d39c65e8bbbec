"""Disagreements: the list for triage, and one item beside its chat."""

from http import HTTPStatus
from typing import Any, cast

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from alignment.comparison.views import back_of
from alignment.misalignments.queries.causes import cause_rows, to_refine
from alignment.misalignments.queries.detail import misalignment_page
from alignment.misalignments.queries.misalignment_list import (
    DisagreementSelection,
    MisalignmentFilter,
    filter_rows,
    grouped,
    hidden_runs,
    misalignment_rows,
    misalignments_listed,
    misalignments_shown,
)
from alignment.misalignments.queries.runs import RESCAN_ON_REQUEST_AFTER, counted_runs, runs_waiting
from alignment.misalignments.queries.triage import CAUSES
from alignment.misalignments.services import small_runs_refresh
from alignment.models.misalignments import Misalignment
from common.access import permission_or_404
from labeling.models.people import User
from labeling.people.queries.visibility import accounts_with
from labeling.sets.queries import names_of_sets

PAGE = 50


@permission_or_404("labeling.see_judge")
@require_http_methods(["GET", "HEAD", "POST"])
def misalignment_list(request: HttpRequest) -> HttpResponse:
    """Show the disagreements that the query string selects; a POST scans small runs that still wait."""
    user, only = cast(User, request.user), MisalignmentFilter.read(request.GET.dict())
    if request.method == "POST":
        return _scan(request, only)
    closed = hidden_runs(user=user)
    shown = misalignments_listed(user=user, without=closed)
    counts = _counts(request, DisagreementSelection(shown, only, user=user), only)
    groups = grouped(misalignment_rows(list(counts["page_obj"])))
    ids = {str(row.item.pk): row.item.pk for group in groups for row in group.rows}
    opened = ids.get(request.GET.get("item", "")) or next(iter(ids.values()), None)
    context = counts | {
        "groups": groups,
        "opened": opened,
        "waiting": runs_waiting(after=RESCAN_ON_REQUEST_AFTER).count(),
        "runs": bool(counts["cause_rows"]) or counted_runs().exists(),
        "closed_runs": len(closed),
        "filters": filter_rows(shown, only),
        "back": back_of(request),
        "causes": CAUSES,
        "people": accounts_with("edit_prompts"),
    }
    if user.has_perm("labeling.manage_labeling"):
        context["sets"] = names_of_sets()
    if opened:
        context |= misalignment_page(_item(request, opened), user=user)
    return render(request, "alignment/misalignments/list.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def misalignment_counts(request: HttpRequest) -> HttpResponse:
    """Show the counts of the list in the same filter: the fragment that replaces them after a change."""
    user, only = cast(User, request.user), MisalignmentFilter.read(request.GET.dict())
    shown = misalignments_listed(user=user, without=hidden_runs(user=user))
    context = _counts(request, DisagreementSelection(shown, only, user=user), only)
    return render(request, "alignment/misalignments/counts.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def misalignment_detail(request: HttpRequest, misalignment_id: int) -> HttpResponse:
    """Show one item with its chat: the fragment beside the list."""
    context: dict[str, Any] = misalignment_page(
        _item(request, misalignment_id), user=cast(User, request.user)
    )
    return render(request, "alignment/misalignments/_detail.html", context)


def _counts(
    request: HttpRequest, selection: DisagreementSelection, only: MisalignmentFilter
) -> dict[str, Any]:
    """Return what the page counts: items and triaged ones in the filter, pages, causes by criterion."""
    causes = cause_rows(selection)
    page: Page[Any] = Paginator(cast(Any, selection), PAGE).get_page(request.GET.get("page"))
    return {
        "page_obj": page,
        "only": only,
        "total": len(selection),
        "triaged": selection.triaged,
        "causes_offered": Misalignment.Cause.choices,
        "cause_rows": causes,
        "to_refine": to_refine(causes),
    }


def _scan(request: HttpRequest, only: MisalignmentFilter) -> HttpResponse:
    """Scan small runs. htmx reloads the page if one was scanned; without htmx, redirect to the list."""
    scanned = small_runs_refresh(run=only.run)
    if request.headers.get("HX-Request") != "true":
        return redirect(request.get_full_path())
    headers = {"HX-Refresh": "true"} if scanned else {}
    return HttpResponse(status=HTTPStatus.NO_CONTENT, headers=headers)


def _item(request: HttpRequest, misalignment_id: int) -> Misalignment:
    shown = misalignments_shown(user=request.user)
    related = ("chat__topic", "criterion__dimension", "owner", "newest_run__judge", "closed_by_version")
    return get_object_or_404(shown.select_related(*related), pk=misalignment_id)
