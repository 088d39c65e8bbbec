"""Endpoints: the list, the form, the test of a connection. For leads; a key is never shown."""

from collections.abc import Callable
from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from common.problems import FieldProblem, InputProblem
from evaluation.connections.forms import EndpointForm
from evaluation.connections.queries import endpoint_row, endpoint_rows, own_row
from evaluation.connections.services import (
    EndpointInUse,
    endpoint_change,
    endpoint_connect,
    endpoint_enable,
    endpoint_offer,
    endpoint_remove,
)
from evaluation.connections.worker import endpoint_test
from evaluation.endpoints.core.presets import BY_ID, PRESETS
from evaluation.endpoints.forms import NameForm
from evaluation.gateway.current import current_endpoint
from evaluation.model_tests.queries import model_rows
from evaluation.models.endpoints import ConnectedEndpoint
from labeling.models.people import User

MANAGES = "labeling.start_runs"


@permission_or_404(MANAGES)
@require_safe
def endpoint_list(request: HttpRequest) -> HttpResponse:
    """Show every endpoint with its state, then the models in use, known or offered."""
    rows = endpoint_rows()
    context: dict[str, object] = {"form": NameForm()}
    own = None
    try:
        own = current_endpoint()
        context |= {"endpoint": own, "models": model_rows(own)}
    except InputProblem as problem:
        context["problem"] = str(problem)
        if own is None:
            context["models"] = model_rows(None)
    context["rows"] = [*([own_row(own)] if own else []), *rows]
    failing = [row for row in rows if row.state == "Failing"]
    return render(request, "evaluation/connections/list.html", context | {"failing": failing})


@permission_or_404(MANAGES)
@sensitive_post_parameters("api_key")
@require_http_methods(["GET", "POST"])
def endpoint_new(request: HttpRequest) -> HttpResponse:
    """Connect an endpoint; `?preset=` fills in what is known of its kind."""
    chosen = BY_ID.get(request.GET.get("preset", ""))
    form = EndpointForm(request.POST or None, preset=chosen or BY_ID["other"])
    if request.method == "POST" and form.is_valid():
        try:
            row = endpoint_connect(choice=form.choice, by=cast(User, request.user))
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, f"Endpoint {row.name} connected. Test it now.")
            return redirect("evaluation:endpoint_detail", row.pk)
    context = {"form": form, "presets": PRESETS, "chosen": chosen}
    return render(request, "evaluation/connections/form.html", context)


@permission_or_404(MANAGES)
@require_safe
def endpoint_detail(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    """Show one endpoint: its state, the last test, the models found there."""
    row = get_object_or_404(
        ConnectedEndpoint.objects.select_related("tested_by", "created_by", "updated_by"), pk=endpoint_id
    )
    offered = list(row.model_names)
    found = [name for name in (row.test or {}).get("found", []) if name not in offered]
    context = {
        "endpoint": endpoint_row(row),
        "row": row,
        "models": [(name, row.prices.get(name)) for name in offered],
        "found": found,
        "preset": BY_ID.get(row.preset),
    }
    return render(request, "evaluation/connections/detail.html", context)


@permission_or_404(MANAGES)
@sensitive_post_parameters("api_key")
@require_http_methods(["GET", "POST"])
def endpoint_edit(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    """Change an endpoint; an empty key field keeps the stored key."""
    row = get_object_or_404(ConnectedEndpoint, pk=endpoint_id)
    preset = BY_ID.get(row.preset, BY_ID["other"])
    form = EndpointForm(request.POST or None, preset=preset, row=row)
    if request.method == "POST" and form.is_valid():
        try:
            endpoint_change(endpoint=row, choice=form.choice, by=cast(User, request.user))
        except FieldProblem as problem:
            form.refuse(problem)
        except EndpointInUse as problem:
            form.add_error(None, str(problem))
        else:
            messages.success(request, "Saved. New requests use these settings.")
            return redirect("evaluation:endpoint_detail", row.pk)
    context = {"form": form, "row": row, "chosen": preset}
    return render(request, "evaluation/connections/form.html", context)


@permission_or_404(MANAGES)
@require_POST
def endpoint_act(request: HttpRequest, endpoint_id: int, act: str) -> HttpResponse:
    """Test the connection, offer models that were found, disable, enable or remove the endpoint."""
    acts: dict[str, Callable[[HttpRequest, ConnectedEndpoint], HttpResponse]] = {
        "test": _test,
        "offer": _offer,
        "disable": _disable,
        "enable": _enable,
        "remove": _remove,
    }
    row = get_object_or_404(ConnectedEndpoint, pk=endpoint_id)
    if act not in acts:
        raise Http404
    try:
        return acts[act](request, row)
    except InputProblem as problem:
        messages.error(request, f"Not done: {problem}.")
        return redirect("evaluation:endpoint_detail", row.pk)


def _test(request: HttpRequest, row: ConnectedEndpoint) -> HttpResponse:
    result = endpoint_test(endpoint=row, by=cast(User, request.user))
    if result.ok:
        messages.success(request, f"{row.name} answers.")
    else:
        messages.error(request, f"{row.name} does not work yet. The test below shows the error.")
    return redirect("evaluation:endpoint_detail", row.pk)


def _offer(request: HttpRequest, row: ConnectedEndpoint) -> HttpResponse:
    found = set((row.test or {}).get("found", []))
    added = [name for name in request.POST.getlist("model") if name in found]
    if not added:
        messages.error(request, "Choose at least one model.")
        return redirect("evaluation:endpoint_detail", row.pk)
    models = tuple(dict.fromkeys([*row.model_names, *added]))
    endpoint_offer(endpoint=row, models=models, by=cast(User, request.user))
    messages.success(request, f"{len(added)} model{'' if len(added) == 1 else 's'} added. Test again.")
    return redirect("evaluation:endpoint_detail", row.pk)


def _disable(request: HttpRequest, row: ConnectedEndpoint) -> HttpResponse:
    endpoint_enable(endpoint=row, enabled=False, by=cast(User, request.user))
    messages.success(request, f"{row.name} is disabled. No run can use it.")
    return redirect("evaluation:endpoint_detail", row.pk)


def _enable(request: HttpRequest, row: ConnectedEndpoint) -> HttpResponse:
    endpoint_enable(endpoint=row, enabled=True, by=cast(User, request.user))
    messages.success(request, f"{row.name} is enabled.")
    return redirect("evaluation:endpoint_detail", row.pk)


def _remove(request: HttpRequest, row: ConnectedEndpoint) -> HttpResponse:
    endpoint_remove(endpoint=row, by=cast(User, request.user))
    messages.success(request, f"Endpoint {row.name} and its key removed. Judges, runs and answers stay.")
    return redirect("evaluation:endpoint_list")
