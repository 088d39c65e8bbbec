"""Adjudication: the queue of disputed items, and one item with its labels side by side."""

from dataclasses import replace
from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods, require_POST

from common.access import permission_or_404
from common.problems import FieldProblem
from common.templatetags.display import visible
from labeling.adjudication.forms import AdjudicationFilterForm, DecisionForm
from labeling.adjudication.queries.item import adjudication_item
from labeling.adjudication.queries.queue import (
    Filters,
    Kind,
    QueueItem,
    neighbours,
    queue_counts,
    queue_items,
    queue_rows,
)
from labeling.adjudication.services import (
    DecidedMeanwhileError,
    adjudication_decide,
    adjudication_withdraw,
    raters_named,
)
from labeling.consensus.core.votes import state_of
from labeling.consensus.queries import dawid_skene_of
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown
from labeling.templatetags.labels import answer_in_words

ITEMS_A_PAGE = 50
MANAGE = "labeling.manage_labeling"


@permission_or_404(MANAGE)
def adjudication_queue(request: HttpRequest) -> HttpResponse:
    """The items that need a decision, most disputed first."""
    filters, form = _filters(request)
    page = Paginator(queue_items(filters=filters, user=cast(User, request.user)), ITEMS_A_PAGE).get_page(
        request.GET.get("page")
    )
    rows = queue_rows(list(page))
    counts = queue_counts(filters=filters, user=request.user)
    model = (
        dawid_skene_of(criterion=filters.criterion, chat_set=filters.chat_set) if filters.criterion else None
    )
    items = [
        {
            "row": row,
            "url": _item_url(row, filters),
            "likely": model.likely.get(row.chat_id) if model else None,
        }
        for row in rows
    ]
    context = {
        "form": form,
        "filters": filters,
        "counts": counts,
        "kinds": [
            {
                "name": kind.label,
                "value": kind.value,
                "count": counts.of(kind),
                "current": kind == filters.kind,
            }
            for kind in Kind
        ],
        "page_obj": page,
        "items": items,
        "start_url": items[0]["url"] if items else "",
        "model": model,
    }
    return render(request, "labeling/adjudication/queue.html", context)


@permission_or_404(MANAGE)
@require_http_methods(["GET", "POST"])
def adjudicate(request: HttpRequest, chat_id: int, key: str) -> HttpResponse:
    """One item; after a decision, the next one."""
    chat, criterion = _item_or_404(request, chat_id, key)
    if request.method == "GET":
        return _page(request, chat, criterion)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return _page(request, chat, criterion, form=form, status=400)
    fields = form.cleaned_data
    try:
        row = adjudication_decide(
            chat=chat,
            criterion=criterion,
            value=fields["value"],
            reason=fields["reason"],
            by=cast(User, request.user),
            seen=fields["seen"],
        )
    except FieldProblem as problem:
        form.add_error(problem.field, problem.message)
        return _page(request, chat, criterion, form=form, status=400)
    except DecidedMeanwhileError as error:
        return _page(request, chat, criterion, form=form, meanwhile=str(error), status=409)
    return _next(request, row)


@permission_or_404(MANAGE)
@require_POST
def adjudicate_named(request: HttpRequest, chat_id: int, key: str) -> HttpResponse:
    """The same page with the raters' names; the request is logged."""
    chat, criterion = _item_or_404(request, chat_id, key)
    raters_named(chat=chat, criterion=criterion, by=cast(User, request.user))
    form = DecisionForm(initial={name: request.POST.get(name, "") for name in ("value", "reason")})
    return _page(request, chat, criterion, form=form, named=True)


@permission_or_404(MANAGE)
@require_POST
def adjudicate_withdraw(request: HttpRequest, chat_id: int, key: str) -> HttpResponse:
    """Withdraw the decision; the majority counts again."""
    chat, criterion = _item_or_404(request, chat_id, key)
    seen = request.POST.get("seen", "")
    if not seen.isdecimal():
        raise Http404
    try:
        adjudication_withdraw(chat=chat, criterion=criterion, by=cast(User, request.user), seen=int(seen))
    except DecidedMeanwhileError as error:
        return _page(request, chat, criterion, meanwhile=str(error), status=409)
    messages.success(request, "Decision withdrawn. The majority counts again.")
    return redirect(_url(chat.pk, criterion.key, _filters(request)[0]))


@permission_or_404(MANAGE)
def adjudicate_likely(request: HttpRequest, chat_id: int, key: str) -> HttpResponse:
    """The item's Dawid–Skene consensus, loaded after the page."""
    chat, criterion = _item_or_404(request, chat_id, key)
    filters, _ = _filters(request)
    model = dawid_skene_of(criterion=criterion, chat_set=filters.chat_set)
    context = {"model": model, "likely": model.likely.get(chat.pk), "chat_set": filters.chat_set}
    return render(request, "labeling/adjudication/_dawid_skene.html", context)


def _item_or_404(request: HttpRequest, chat_id: int, key: str) -> tuple[Chat, Criterion]:
    chats = chats_shown(user=cast(User, request.user)).select_related("topic")
    criteria = Criterion.objects.select_related("dimension")
    return get_object_or_404(chats, pk=chat_id), get_object_or_404(criteria, key=key)


def _filters(request: HttpRequest) -> tuple[Filters, AdjudicationFilterForm]:
    """Return the filters of the query string; 404 where they are not valid."""
    form = AdjudicationFilterForm(request.GET)
    if not form.is_valid():
        raise Http404
    query = QueryDict(mutable=True)
    query.update({name: request.GET[name] for name in form.fields if request.GET.get(name)})
    return replace(form.filters(), query=query.urlencode()), form


def _page(
    request: HttpRequest,
    chat: Chat,
    criterion: Criterion,
    *,
    form: DecisionForm | None = None,
    meanwhile: str = "",
    named: bool = False,
    status: int = 200,
) -> HttpResponse:
    filters, _ = _filters(request)
    item = adjudication_item(chat=chat, criterion=criterion)
    around = neighbours(filters=filters, user=request.user, chat_id=chat.pk, criterion_id=criterion.pk)
    context = {
        "item": item,
        "chat": chat,
        "form": form or DecisionForm(),
        "meanwhile": meanwhile,
        "named": named,
        "filters": filters,
        "left": around.left,
        "next_url": _item_url(around.after, filters) if around.after else "",
        "prev_url": _item_url(around.before, filters) if around.before else "",
        "queue_url": _queue_url(filters),
        "query": f"?{filters.query}" if filters.query else "",
        "majority": _majority(item.consensus),
    }
    return render(request, "labeling/adjudication/adjudicate.html", context, status=status)


def _next(request: HttpRequest, row: Adjudication) -> HttpResponse:
    """Go to the next item of the queue with a link back, or to the queue after the last item."""
    filters, _ = _filters(request)
    around = neighbours(
        filters=filters, user=request.user, chat_id=row.chat_id, criterion_id=row.criterion_id
    )
    own = _url(row.chat_id, row.criterion.key, filters)
    answer, name, chat = answer_in_words(state_of(row.value)), row.criterion.name, row.chat.external_id
    text = 'Decided {}: {}, chat {}. <a href="{}" data-undo>Change or withdraw</a>'
    messages.success(request, format_html(text, answer, visible(name), visible(chat), own))
    return redirect(_item_url(around.after, filters) if around.after else _queue_url(filters))


def _item_url(item: QueueItem, filters: Filters) -> str:
    return _url(item.chat_id, item.criterion, filters)


def _url(chat_id: int, key: str, filters: Filters) -> str:
    url = reverse("labeling:adjudicate", args=[chat_id, key])
    return f"{url}?{filters.query}" if filters.query else url


def _queue_url(filters: Filters) -> str:
    url = reverse("labeling:adjudication_queue")
    return f"{url}?{filters.query}" if filters.query else url


def _majority(consensus: Any) -> str:
    """Return the label counts, largest first, e.g. 2:1; '' without labels."""
    if consensus is None:
        return ""
    counts = (consensus.n_true, consensus.n_false, consensus.n_na)
    return ":".join(str(count) for count in sorted(counts, reverse=True) if count)
