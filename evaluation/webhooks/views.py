"""Webhooks: the list, the form, one webhook with the log of its deliveries. For leads."""

import json
from collections.abc import Callable
from typing import cast
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from common.drafts.middleware import ANSWERED
from common.problems import FieldProblem, InputProblem
from evaluation.models.outbox import Delivery, WebhookEndpoint
from evaluation.webhooks.core import event_told
from evaluation.webhooks.forms import ReplayForm, WebhookForm
from evaluation.webhooks.queries import (
    delivery_page,
    next_attempt,
    shows_event,
    webhook_row,
    webhook_rows,
    worker_missing,
)
from evaluation.webhooks.services import (
    NewSecret,
    event_replay,
    period_replay,
    webhook_add,
    webhook_change,
    webhook_remove,
    webhook_renew,
    webhook_switch,
    webhook_test,
)
from labeling.models.people import User

MANAGES = "labeling.manage_labeling"


@permission_or_404(MANAGES)
@require_safe
def webhook_list(request: HttpRequest) -> HttpResponse:
    """Show every webhook with its state."""
    rows = webhook_rows()
    context = {
        "rows": rows,
        "troubled": [one for one in rows if one.look == "not"],
        "no_worker": worker_missing() if rows else "",
    }
    return render(request, "evaluation/webhooks/list.html", context)


@permission_or_404(MANAGES)
@sensitive_variables("new")
@require_http_methods(["GET", "POST"])
def webhook_new(request: HttpRequest) -> HttpResponse:
    """Add a webhook; the answer shows its secret, this once."""
    form = WebhookForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            new = webhook_add(choice=form.choice, by=cast(User, request.user))
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            return _secret_page(request, new, added=True)
    return render(request, "evaluation/webhooks/form.html", {"form": form})


@permission_or_404(MANAGES)
@require_safe
def webhook_detail(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Show a webhook with the log of its deliveries; `?before=ID` goes on with older ones."""
    return _detail(request, _webhook(webhook_id), ReplayForm())


@permission_or_404(MANAGES)
@require_http_methods(["GET", "POST"])
def webhook_edit(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Change name, address and kinds."""
    row = _webhook(webhook_id)
    form = WebhookForm(request.POST if request.method == "POST" else None, row=row)
    if request.method == "POST" and form.is_valid():
        try:
            webhook_change(webhook=row, choice=form.choice, by=cast(User, request.user))
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, "Saved. The next request uses it.")
            return redirect("evaluation:webhook_detail", row.pk)
    return render(request, "evaluation/webhooks/form.html", {"form": form, "row": row})


@permission_or_404(MANAGES)
@require_safe
def webhook_delivery(request: HttpRequest, webhook_id: int, delivery_id: int) -> HttpResponse:
    """Show one delivery: its attempts, the answer of the receiver, and the event."""
    rows = Delivery.objects.select_related("event", "endpoint")
    row = get_object_or_404(rows, pk=delivery_id, endpoint=webhook_id)
    event = row.event
    told = event_told(event_id=str(event.pk), kind=event.kind, at=event.created_at, payload=event.payload)
    body = json.dumps(told, ensure_ascii=False, indent=2)
    context = {"row": row, "body": body, "shown": shows_event(event, user=cast(User, request.user))}
    return render(request, "evaluation/webhooks/delivery.html", context)


@permission_or_404(MANAGES)
@sensitive_variables("new")
@require_POST
def webhook_act(request: HttpRequest, webhook_id: int, act: str) -> HttpResponse:
    """Send a test, send again, make a new secret, switch on or off, remove."""
    acts: dict[str, Callable[[HttpRequest, WebhookEndpoint], HttpResponse]] = {
        "test": _test,
        "again": _again,
        "replay": _replay,
        "secret": _secret,
        "on": _on,
        "off": _off,
        "remove": _remove,
    }
    row = _webhook(webhook_id)
    if act not in acts:
        raise Http404
    try:
        return acts[act](request, row)
    except InputProblem as problem:
        messages.error(request, f"Not done: {problem}.")
        return redirect("evaluation:webhook_detail", row.pk)


def _test(request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    delivery = webhook_test(webhook=row, by=cast(User, request.user))
    messages.success(request, "Test event sent. The answer appears here within seconds.")
    return redirect("evaluation:webhook_delivery", row.pk, delivery.pk)


def _again(request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    try:
        delivery = event_replay(
            webhook=row, event_id=UUID(request.POST.get("event", "")), by=cast(User, request.user)
        )
    except ValueError:  # FieldProblem is one
        raise Http404 from None
    messages.success(request, "The event is sent again, with the same id.")
    return redirect("evaluation:webhook_delivery", row.pk, delivery.pk)


def _replay(request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    form = ReplayForm(request.POST)
    if form.is_valid():
        period = {name: form.cleaned_data[name] for name in ("since", "until")}
        try:
            count = period_replay(webhook=row, by=cast(User, request.user), **period)
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            plural = "" if count == 1 else "s"
            messages.success(request, f"{count:,} event{plural} are sent again, each with its own id.")
            return redirect("evaluation:webhook_detail", row.pk)
    return _detail(request, row, form)


def _secret(request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    return _secret_page(request, webhook_renew(webhook=row, by=cast(User, request.user)))


def _on(request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    webhook_switch(webhook=row, on=True, by=cast(User, request.user))
    messages.success(request, f"{row.name} is on. Events that waited are sent now.")
    return redirect("evaluation:webhook_detail", row.pk)


def _off(request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    webhook_switch(webhook=row, on=False, by=cast(User, request.user))
    messages.success(request, f"{row.name} is off. Replay the events of the pause once it is on again.")
    return redirect("evaluation:webhook_detail", row.pk)


def _remove(request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    webhook_remove(webhook=row, by=cast(User, request.user))
    messages.success(request, f"Webhook {row.name} removed, with its secret and its log.")
    return redirect("evaluation:webhook_list")


def _webhook(webhook_id: int) -> WebhookEndpoint:
    rows = WebhookEndpoint.objects.select_related("created_by", "updated_by")
    return get_object_or_404(rows, pk=webhook_id)


def _detail(request: HttpRequest, row: WebhookEndpoint, form: ReplayForm) -> HttpResponse:
    before, state = request.GET.get("before", ""), request.GET.get("state", "")
    older_than = int(before) if before.isdecimal() and len(before) < 19 else None
    context = {
        "webhook": webhook_row(row),
        "row": row,
        "page": delivery_page(row, state=state, before=older_than),
        "later": older_than is not None,
        "states": Delivery.State.choices,
        "state": state if state in Delivery.State.values else "",
        "held_until": next_attempt(row),
        "form": form,
        "no_worker": worker_missing(),
    }
    return render(request, "evaluation/webhooks/detail.html", context)


def _secret_page(request: HttpRequest, new: NewSecret, *, added: bool = False) -> HttpResponse:
    """Show a secret. NB: no redirect: session, cookie and address would store it."""
    context = {"row": new.webhook, "secret": str(new.secret), "added": added}
    answer = render(request, "evaluation/webhooks/secret.html", context)
    answer[ANSWERED] = "yes"
    return answer
