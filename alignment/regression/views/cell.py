"""Chats of a regression test: lists by cell, comparison of one chat, counts by topic."""

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from alignment.comparison.core.disclosure_limit import MINIMUM_HOLDOUT_CHATS
from alignment.regression.core import CELLS
from alignment.regression.queries.cells import (
    MEANINGS,
    NAMES,
    STORED,
    CellFilter,
    PairedCriterion,
    cell_filters,
    cell_rows,
    paired_criterion,
)
from alignment.regression.queries.chat_page import regression_chat_page
from alignment.regression.queries.page import regression_tests
from alignment.regression.queries.topics import topic_rows
from common.access import permission_or_404
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.chats import Chat
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import sees_every_chat

PAGE = 50


@permission_or_404("labeling.see_judge")
@require_safe
def regression_cell(request: HttpRequest, test_id: int, key: str, cell: str) -> HttpResponse:
    """List the visible chats of one cell, filtered by the query string."""
    criterion, tested = _tested_or_404(request, test_id, key)
    if cell not in CELLS:
        raise Http404
    narrow = _narrow(request)
    readable, listed = tested.readable(cell, CellFilter()), tested.readable(cell, narrow)
    page = Paginator(listed, PAGE).get_page(request.GET.get("page"))
    total, hidden = tested.total(cell), tested.concealed or tested.own.chats > 0
    text = newest_versions(criteria=[criterion])[criterion.pk]
    context: dict[str, Any] = {
        "test": tested.test,
        "criterion": criterion,
        "question": text.question,
        "passes_when": text.passes_when,
        "cell": {"name": NAMES[cell], "meaning": MEANINGS[cell]},
        "page_obj": page,
        "items": cell_rows(tested, list(page), narrow.query(cell=cell)),
        "total": None if hidden else total,
        "hidden": 0 if hidden else total - len(readable),
        "own": tested.own,
        "then": tested.stored.get(STORED[cell]),
        "changed": tested.changed,
        "concealed": tested.concealed,
        "narrow": narrow,
        "shape": "paired",
        "filters": cell_filters(readable, narrow),
    }
    return render(request, "alignment/regression/cell.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def regression_chat(request: HttpRequest, test_id: int, key: str, chat_id: int) -> HttpResponse:
    """Compare champion and candidate on one chat."""
    criterion, tested = _tested_or_404(request, test_id, key)
    member = next((member for member in tested.members if member.pk == chat_id), None)
    cell = request.GET.get("cell", "")
    if member is None or cell not in ("", *CELLS):
        raise Http404
    chat = get_object_or_404(Chat.objects.select_related("topic"), pk=chat_id)
    context = regression_chat_page(
        tested=tested, criterion=criterion, chat=chat, member=member, cell=cell, narrow=_narrow(request)
    )
    return render(request, "alignment/regression/chat.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def regression_topics(request: HttpRequest, test_id: int) -> HttpResponse:
    """Show the counts of one criterion by topic, loaded into the test's page."""
    test = get_object_or_404(regression_tests(), pk=test_id)
    criterion = get_object_or_404(Criterion, key=request.GET.get("criterion", ""))
    rows = topic_rows(test, key=criterion.key, user=request.user)
    if rows is None:
        raise Http404
    context = {
        "test": test,
        "key": criterion.key,
        "name": criterion.name,
        "rows": rows,
        "fewest": MINIMUM_HOLDOUT_CHATS,
        "conceals": not sees_every_chat(user=request.user),
    }
    return render(request, "alignment/regression/_topic_rows.html", context)


def _tested_or_404(request: HttpRequest, test_id: int, key: str) -> tuple[Criterion, PairedCriterion]:
    """Return the tested criterion; 404 before the gate has decided."""
    test = get_object_or_404(regression_tests(), pk=test_id)
    criterion = get_object_or_404(Criterion.objects.select_related("dimension"), key=key)
    tested = paired_criterion(test, key=key, user=request.user)
    if tested is None:
        raise Http404
    return criterion, tested


def _narrow(request: HttpRequest) -> CellFilter:
    return CellFilter(*(request.GET.get(name, "").strip() for name in ("topic", "split", "q")))
