"""Alignment reports, their cells, and a run's chats."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from alignment.core.report import EACH_RATER
from alignment.selectors.answers import UnknownRater
from alignment.selectors.cells import CELL_CODES, cell_chats, chats_in
from alignment.selectors.chat_page import chat_page
from alignment.selectors.report_list import report_list as all_reports
from alignment.selectors.report_page import CELLS, notices, report_page, scope_query
from alignment.selectors.reports import alignment_report
from alignment.selectors.scope import Scope, requested_scope
from evaluation.models.runs import Run
from labeling.access import permission_or_404
from labeling.models.chats import Chat, ChatSet
from labeling.models.rubric import Criterion

PAGE = 50


def unknown_rater_404(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Guard a view: a page against a rater who gave no label there does not exist."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except UnknownRater as error:
            raise Http404 from error

    return guarded


@permission_or_404("labeling.see_judge")
def report_list(request: HttpRequest) -> HttpResponse:
    """Every run and set that can be reported on."""
    return render(request, "alignment/report_list.html", all_reports())


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def report_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """The alignment report of a run."""
    run = get_object_or_404(Run.objects.select_related("judge", "chat_set"), pk=run_id)
    return _report(request, scope_or_404(request, run.chat_set, run))


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def report_set(request: HttpRequest, set_id: int) -> HttpResponse:
    """People's agreement on a set, without a judge."""
    return _report(request, scope_or_404(request, get_object_or_404(ChatSet, pk=set_id), None))


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def cell(request: HttpRequest, run_id: int, key: str, cell: str) -> HttpResponse:
    """The chats of one cell of a criterion's matrix."""
    run = get_object_or_404(Run.objects.select_related("judge", "chat_set"), pk=run_id)
    criterion = get_object_or_404(Criterion, key=key)
    scope = scope_or_404(request, run.chat_set, run)
    if cell not in CELL_CODES or scope.against == EACH_RATER:
        raise Http404
    page = Paginator(chats_in(scope, key, (cell,), request.user), PAGE).get_page(request.GET.get("page"))
    query = scope_query(scope)
    context = {
        "criterion": {
            "key": key,
            "name": criterion.name,
            "question": criterion.versions.latest("number").question,
            "url": reverse("evaluation:criterion_detail", args=[key]),
        },
        "cell": CELLS[cell],
        "page_obj": page,
        "items": cell_chats(scope, key, cell, list(page), query.replace("?", "&", 1)),
        "run": run,
        "report_url": reverse("alignment:report_run", args=[run.pk]) + query,
        "notices": notices(scope),
    }
    return render(request, "alignment/cell.html", context)


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def chat(request: HttpRequest, run_id: int, chat_id: int) -> HttpResponse:
    """One chat of a run: people's labels, the verdicts, and the whole rationale."""
    run = get_object_or_404(Run.objects.select_related("judge", "chat_set"), pk=run_id)
    chats = Chat.objects.visible_to(request.user).select_related("topic")
    row = get_object_or_404(chats, pk=chat_id, pk__in=run.run_chats.values("chat_id"))
    scope = scope_or_404(request, run.chat_set, run)
    query = scope_query(scope)
    more = query.replace("?", "&", 1)
    context = chat_page(run=run, chat=row, key=request.GET.get("criterion", ""), query=more)
    key = context["focus"]["criterion"]["key"]
    split = scope.members.filter(chat=row).values_list("split", flat=True).first()
    links = _neighbours(request, scope, key, row.external_id, more)
    report_url = reverse("alignment:report_run", args=[run.pk]) + query
    extra = {"split": split, "report_url": report_url, "notices": notices(scope)}
    return render(request, "alignment/chat.html", context | links | extra)


def scope_or_404(request: HttpRequest, chat_set: ChatSet | None, run: Run | None) -> Scope:
    """The scope that the query string asks for; nonsense there is not found."""
    scope = requested_scope(chat_set, run, request.GET)
    if scope is None:
        raise Http404
    return scope


def _report(request: HttpRequest, scope: Scope) -> HttpResponse:
    return render(request, "alignment/report.html", report_page(alignment_report(scope), scope))


def _neighbours(request: HttpRequest, scope: Scope, key: str, external_id: str, query: str) -> dict[str, Any]:
    """Links to the previous and the next disagreement on this criterion, in the set's order."""
    if scope.run is None or scope.against == EACH_RATER:
        return {}
    names = scope.members.values_list("chat__external_id", flat=True)
    order = {name: place for place, name in enumerate(names)}
    here = order.get(external_id, -1)
    differing = chats_in(scope, key, ("fn", "fp"), request.user)
    before = [name for name in differing if order[name] < here]
    after = [name for name in differing if order[name] > here]
    found = {"prev_url": before[-1:], "next_url": after[:1]}
    chats = Chat.objects.filter(external_id__in=[*before[-1:], *after[:1]])
    ids = dict(chats.values_list("external_id", "pk"))
    return {
        name: f"{reverse('alignment:chat', args=[scope.run.pk, ids[names[0]]])}?criterion={key}{query}"
        for name, names in found.items()
        if names
    }
