"""Misalignments: the list that is triaged by keyboard, and one item beside its chat."""

from typing import Any, cast

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from alignment.misalignments.queries.causes import cause_rows, to_refine
from alignment.misalignments.queries.detail import misalignment_page
from alignment.misalignments.queries.misalignment_list import (
    STATES,
    Found,
    MisalignmentFilter,
    closed_runs,
    filter_choices,
    grouped,
    misalignment_rows,
    misalignments_listed,
    misalignments_shown,
)
from alignment.misalignments.queries.runs import counted_runs, runs_waiting
from alignment.misalignments.worker import small_runs_refresh
from alignment.models.misalignments import Misalignment
from common.access import permission_or_404
from labeling.models.people import User

PAGE = 50


@permission_or_404("labeling.see_judge")
@require_safe
def misalignment_list(request: HttpRequest) -> HttpResponse:
    """Items, grouped; the address filters them, and names the open one."""
    user, only = cast(User, request.user), MisalignmentFilter.read(request.GET.dict())
    small_runs_refresh(run=only.run)
    closed = closed_runs(user=user)
    shown = misalignments_listed(user=user, without=closed)
    found = Found(shown, only, user=user)
    page: Page[Any] = Paginator(cast(Any, found), PAGE).get_page(request.GET.get("page"))
    causes = cause_rows(found)
    groups = grouped(misalignment_rows(list(page)))
    ids = {str(row.item.pk): row.item.pk for group in groups for row in group.rows}
    opened = ids.get(request.GET.get("item", "")) or next(iter(ids.values()), None)
    context = {
        "page_obj": page,
        "groups": groups,
        "opened": opened,
        "only": only,
        "states": STATES.items(),
        "causes_offered": Misalignment.Cause.choices,
        "waiting": runs_waiting().count(),
        "runs": bool(causes) or counted_runs().exists(),
        "closed_runs": len(closed),
        "cause_rows": causes,
        "to_refine": to_refine(causes),
        **filter_choices(shown),
    }
    if opened:
        context |= misalignment_page(_whole(request, opened))
    return render(request, "alignment/misalignments/list.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def misalignment_detail(request: HttpRequest, misalignment_id: int) -> HttpResponse:
    """The part of the page beside the list: one item with its chat."""
    context: dict[str, Any] = misalignment_page(_whole(request, misalignment_id))
    return render(request, "alignment/misalignments/_detail.html", context)


def _whole(request: HttpRequest, misalignment_id: int) -> Misalignment:
    shown = misalignments_shown(user=request.user)
    wanted = ("chat__topic", "criterion__dimension", "owner", "newest_run__judge", "closed_by_version")
    return get_object_or_404(shown.select_related(*wanted), pk=misalignment_id)
