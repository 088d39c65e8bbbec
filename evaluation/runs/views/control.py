"""Views shared by pages that control runs: actions, and live progress with htmx."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.contrib import messages
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from common.problems import InputProblem
from evaluation.runs.forms import ResumeForm
from labeling.models.people import User

MESSAGES = {
    "pause": "{name} {pk} paused. Pending calls are still stored.",
    "resume": "{name} {pk} resumed.",
    "cancel": "{name} {pk} cancelled. Its verdicts are kept.",
}


@dataclass(frozen=True)
class Control:
    """The kind of row that a page controls: name, page, and a service per action.

    argument : keyword under which the services take the row.
    services : by action; they also take `by`, and for `resume` an optional `budget_usd`.
    """

    name: str
    url: str
    argument: str
    services: Mapping[str, Callable[..., object]]


def perform_action(request: HttpRequest, control: Control, row: Model, action: str) -> HttpResponse:
    """Pause, resume or cancel and go back to the page, which shows a refusal; 404 for another action."""
    service = control.services.get(action)
    if service is None:
        raise Http404
    try:
        budget = _budget(request) if action == "resume" else {}
        service(**{control.argument: row}, by=cast(User, request.user), **budget)
    except InputProblem as problem:
        messages.error(request, f"{control.name} {row.pk} not changed: {problem}.")
    else:
        messages.success(request, MESSAGES[action].format(name=control.name, pk=row.pk))
    return redirect(control.url, row.pk)


def polls(request: HttpRequest) -> bool:
    """Tell whether the page asks for its progress."""
    return bool(request.headers.get("HX-Request"))


def replace_page(response: HttpResponse) -> HttpResponse:
    """Make htmx replace the whole page instead of the progress."""
    for header, value in (("Retarget", "#main"), ("Reselect", "#main"), ("Reswap", "outerHTML")):
        response[f"HX-{header}"] = value
    return response


def resume_form(budget_usd: Any) -> ResumeForm | None:
    """Return the form for a new budget; None without a budget to change."""
    return None if budget_usd is None else ResumeForm(initial={"budget_usd": budget_usd})


def _budget(request: HttpRequest) -> dict[str, Any]:
    """Return a new budget if one is entered; raises InputProblem."""
    form = ResumeForm(request.POST)
    if not form.is_valid():
        reason = str(form.errors["budget_usd"][0]).rstrip(".")
        raise InputProblem(f"the budget is not an amount in dollars: {reason}")
    return form.cleaned_data
