"""A model: what it takes, what the workspace sets, and the model test."""

from collections.abc import Callable
from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from common.problems import InputProblem
from evaluation.endpoints.forms import LABELS, ModelForm, NameForm
from evaluation.endpoints.queries import model_profile
from evaluation.endpoints.services import model_forget, model_set
from evaluation.gateway.current import endpoint_names
from evaluation.model_tests.queries import model_price, profile_fields
from evaluation.model_tests.services import model_test_cancel, model_test_start
from evaluation.model_tests.worker import STEPS
from evaluation.models.judges import EndpointModel
from labeling.models.people import User


@permission_or_404("labeling.start_runs")
@require_POST
def model_test(request: HttpRequest) -> HttpResponse:
    """Start the test of a model, of the server's own endpoint if none is named, and show its page."""
    form = NameForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Enter the model's name, 200 characters at most.")
        return redirect("evaluation:endpoint_list")
    try:
        row = model_test_start(
            model=form.cleaned_data["model"],
            by=cast(User, request.user),
            endpoint=form.cleaned_data["endpoint"],
        )
    except InputProblem as problem:
        messages.error(request, f"Not tested: {problem}.")
        return redirect("evaluation:endpoint_list")
    return redirect("evaluation:model_detail", row.pk)


@permission_or_404("labeling.see_judge")
@require_safe
def model_detail(request: HttpRequest, model_id: int) -> HttpResponse:
    """Show a model's test and profile; htmx asks for the test alone while it is in work."""
    row = get_object_or_404(EndpointModel.objects.select_related("tested_by"), pk=model_id)
    if request.headers.get("HX-Request"):
        return render(request, "evaluation/endpoints/_test.html", _test_context(row))
    return _page(request, row, ModelForm(chosen=row.chosen))


@permission_or_404("labeling.start_runs")
@require_http_methods(["POST"])
def model_act(request: HttpRequest, model_id: int, act: str) -> HttpResponse:
    """Save what the workspace sets, forget what was learned, or cancel the test in work."""
    acts: dict[str, Callable[[HttpRequest, EndpointModel], HttpResponse]] = {
        "set": _set,
        "forget": _forget,
        "cancel": _cancel,
    }
    row = get_object_or_404(EndpointModel, pk=model_id)
    if act not in acts:
        raise Http404
    return acts[act](request, row)


def _set(request: HttpRequest, row: EndpointModel) -> HttpResponse:
    form = ModelForm(request.POST, chosen=row.chosen)
    if not form.is_valid():
        return _page(request, row, form)
    model_set(endpoint=row.endpoint, model=row.model, changes=form.cleaned_data)
    messages.success(request, "Saved. New requests use these settings.")
    return redirect("evaluation:model_detail", row.pk)


def _forget(request: HttpRequest, row: EndpointModel) -> HttpResponse:
    model_forget(endpoint=row.endpoint, model=row.model)
    messages.success(request, "Forgotten. The next requests learn again what the model takes.")
    return redirect("evaluation:model_detail", row.pk)


def _cancel(request: HttpRequest, row: EndpointModel) -> HttpResponse:
    model_test_cancel(row=row)
    return redirect("evaluation:model_detail", row.pk)


def _page(request: HttpRequest, row: EndpointModel, form: ModelForm) -> HttpResponse:
    profile = model_profile(endpoint=row.endpoint, model=row.model)
    try:
        price = model_price(row)
    except InputProblem:
        price = None  # the list of models names the trouble with the price file
    context = {
        "form": form,
        "fields": [(LABELS[field.name], field) for field in profile_fields(profile)],
        "price": price,
        **_test_context(row),
    }
    return render(request, "evaluation/endpoints/model_detail.html", context)


def _test_context(row: EndpointModel) -> dict[str, object]:
    return {
        "row": row,
        "result": row.test,
        "testing": row.testing,
        "steps": STEPS,
        "seconds_left": row.test_seconds_left(STEPS),
        "here": row.endpoint in endpoint_names(),
    }
