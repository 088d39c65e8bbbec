"""Regression tests: all of them, what one found, and what can be done with it."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from alignment.comparison.queries.disclosure import tell
from alignment.models.regressions import RegressionTest
from alignment.regression.forms.tests import OverrideForm
from alignment.regression.queries.page import (
    regression_name,
    regression_page,
    regression_progress,
    regression_whole,
)
from alignment.regression.queries.test_list import RegressionFilter, regression_filters, regression_rows
from alignment.regression.services.control import regression_pause, regression_resume
from alignment.regression.services.releases import may_release, release, release_problem
from alignment.regression.services.tests import regression_cancel
from alignment.regression.worker import runs_of
from common.access import permission_or_404
from common.problems import InputProblem
from evaluation.runs.forms import ResumeForm
from evaluation.runs.queries.redact_errors import tell_errors
from labeling.models.people import User

PAGE = 50
ACTS: dict[str, tuple[Callable[..., object], str]] = {
    "pause": (regression_pause, "Regression test {} is paused. What is in flight is still taken in."),
    "resume": (regression_resume, "Regression test {} goes on from where it stood."),
    "cancel": (regression_cancel, "Regression test {} is cancelled. Its verdicts so far stay."),
}


@permission_or_404("labeling.see_judge")
@require_safe
def regression_list(request: HttpRequest) -> HttpResponse:
    """Tests, newest first; the address filters them."""
    only = RegressionFilter(request.GET.get("criterion", ""), request.GET.get("state", ""))
    page = Paginator(regression_rows(only), PAGE).get_page(request.GET.get("page"))
    rows = list(page)
    tell(rows, user=request.user)
    context = {
        "page_obj": page,
        "active": any(test.is_open for test in rows),
        "filters": regression_filters(only) if rows or only.narrows else [],
        "narrows": only.narrows,
    }
    return render(request, "alignment/regression/list.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def regression_detail(request: HttpRequest, test_id: int) -> HttpResponse:
    """One test: how far it is, the gate's answer and the counts behind it; no chat is named.

    The page asks for its progress with the states it has `seen`; in others all of it is new.
    """
    test, user = get_object_or_404(regression_whole(), pk=test_id), cast(User, request.user)
    tell([test], user=user)
    tell_errors(runs_of(test), user=user)
    again = bool(request.headers.get("HX-Request"))
    if again and request.GET.get("seen") == (progress := regression_progress(test))["seen"]:
        return render(request, "alignment/regression/_progress.html", progress)
    response = _page(request, test, OverrideForm())
    if again:
        for header, value in (("Retarget", "#main"), ("Reselect", "#main"), ("Reswap", "outerHTML")):
            response[f"HX-{header}"] = value
    return response


@permission_or_404("labeling.edit_prompts")
@require_POST
def regression_act(request: HttpRequest, test_id: int, act: str) -> HttpResponse:
    """Pause, resume or cancel; what is refused is said on the page."""
    test, user = get_object_or_404(RegressionTest, pk=test_id), cast(User, request.user)
    if act not in ACTS:
        raise Http404
    do, said = ACTS[act]
    try:
        do(test=test, by=user, **(_budget(request) if act == "resume" else {}))
    except InputProblem as refused:
        messages.error(request, f"Regression test {test.pk} stays as it is: {refused}.")
    else:
        messages.success(request, said.format(test.pk))
    return redirect("alignment:regression_detail", test.pk)


@permission_or_404("labeling.edit_prompts")
@require_POST
def regression_release(request: HttpRequest, test_id: int) -> HttpResponse:
    """Put the candidate in the champion's place; against the gate's answer only with a reason.

    Refused, the page says why and keeps the reason.
    """
    test, user = get_object_or_404(regression_whole(), pk=test_id), cast(User, request.user)
    if not may_release(test=test, user=user):
        raise Http404
    override = test.result != RegressionTest.Result.PASS
    form = OverrideForm(request.POST)
    try:
        if override and not form.is_valid():
            raise InputProblem(str(form.errors["reason"][0]).rstrip("."))
        reason = form.cleaned_data["reason"] if override else ""
        release(test=test, by=user, reason=reason, override=override)
    except InputProblem as refused:
        messages.error(request, f"Not released: {refused}.")
        tell([test], user=user)
        tell_errors(runs_of(test), user=user)
        return _page(request, test, form if override else OverrideForm())
    messages.success(request, "Released. Judges ask it in every new run; older runs keep theirs.")
    return redirect("alignment:regression_detail", test.pk)


def _page(request: HttpRequest, test: RegressionTest, override: OverrideForm) -> HttpResponse:
    user = cast(User, request.user)
    more = {"name": regression_name(test), "override": override}
    context = regression_page(test, user) | _can(test, user) | more
    return render(request, "alignment/regression/detail.html", context)


def _budget(request: HttpRequest) -> dict[str, Any]:
    """A new cap, if one is given; raises InputProblem."""
    form = ResumeForm(request.POST)
    if not form.is_valid():
        why = str(form.errors["budget_usd"][0]).rstrip(".")
        raise InputProblem(f"the budget is no amount in dollars: {why}")
    return form.cleaned_data


def _can(test: RegressionTest, user: User) -> dict[str, Any]:
    """What this user may do with the test, and what stands against it."""
    budget = test.candidate_run.budget_usd
    over = test.state == RegressionTest.State.DONE and test.released_at is None
    return {
        "controls": test.is_open and user.has_perm("labeling.edit_prompts"),
        "resume": None if budget is None else ResumeForm(initial={"budget_usd": budget}),
        "problem": release_problem(test) if over else "",
        "may_release": may_release(test=test, user=user),
    }
