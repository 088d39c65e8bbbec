"""Start of a regression test: form, estimate and power."""

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from alignment.regression.forms.tests import JudgeTestForm, PromptTestForm, StartForm
from alignment.regression.queries.plan import set_to_offer
from alignment.regression.queries.tests import gate_policy
from alignment.regression.services.starts import (
    RegressionRequest,
    regression_estimate,
    regression_outlook,
    regression_start,
)
from common.access import permission_or_404
from common.problems import InputProblem
from evaluation.judges.queries.configs import judge_endpoint
from labeling.models.people import User
from labeling.models.rubric import Criterion

STARTED = "Regression test {} started. You can leave this page."
STARTED_BEFORE = "This form already started regression test {}. No second test was started."
FORMS: dict[str, type[StartForm]] = {"prompt": PromptTestForm, "judge": JudgeTestForm}


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "POST"])
def regression_new(request: HttpRequest) -> HttpResponse:
    """Show the form and start a test; `?criterion=` and `?version=` preselect."""
    kind, user = _form(request), cast(User, request.user)
    if request.method != "POST":
        return _page(request, kind(initial=_initial(request, kind), by=user))
    form = kind(request.POST, by=user)
    if form.is_valid():
        try:
            started = regression_start(form.wish, by=user)
        except InputProblem as problem:
            form.add_error(None, str(problem))
        else:
            message = STARTED_BEFORE if started.again else STARTED
            messages.success(request, message.format(started.test.pk))
            return redirect("alignment:regression_detail", started.test.pk)
    return _page(request, form)


@permission_or_404("labeling.edit_prompts")
@require_safe
def regression_estimate_part(request: HttpRequest) -> HttpResponse:
    """Show calls, cost and power of the test in the form: the panel beside it."""
    user = cast(User, request.user)
    form = _form(request)(request.GET, by=user)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        try:
            context = _estimated(form.wish, user)
        except InputProblem as problem:
            context = {"problem": str(problem)}
    return render(request, "alignment/regression/_estimate.html", context)


def _estimated(wish: RegressionRequest, user: User) -> dict[str, Any]:
    """Return calls, cost, labels and power."""
    estimate = regression_estimate(wish)
    outlook = regression_outlook(wish, estimate.criteria, by=user)
    policy = gate_policy(wish.choice.policy)
    return {
        "estimate": estimate,
        "outlook": outlook,
        "confirms": policy.confirm and any(row.blocks for row in outlook.labelled),
        "embedded": judge_endpoint(wish.judge or wish.choice.judge).embedded,
    }


def _form(request: HttpRequest) -> type[StartForm]:
    data = request.POST if request.method == "POST" else request.GET
    return FORMS.get(data.get("kind", ""), PromptTestForm)


def _initial(request: HttpRequest, kind: type[StartForm]) -> dict[str, Any]:
    """Return the values of the query string, with a default chat set."""
    values: dict[str, Any] = {name: value for name, value in request.GET.items() if name in kind.base_fields}
    criterion = Criterion.objects.filter(key=values.get("criterion", "")).first()
    if criterion is None:
        values.pop("criterion", None)
    if "set" not in values and (chat_set := set_to_offer(criterion)) is not None:
        values["set"] = chat_set.pk
    return values


def _page(request: HttpRequest, form: StartForm) -> HttpResponse:
    return render(request, "alignment/regression/new.html", {"form": form, "kind": form.kind})
