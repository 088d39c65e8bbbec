"""Regression tests: list, page, actions and release."""

from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from alignment.comparison.queries.disclosure import hide_small_counts
from alignment.models.regressions import RegressionTest, ReleaseRequest
from alignment.regression.forms.tests import OverrideForm
from alignment.regression.queries.candidate_tests import candidate_tests, override_reasons
from alignment.regression.queries.page import (
    regression_name,
    regression_page,
    regression_progress,
    regression_tests,
)
from alignment.regression.queries.release_requests import release_requests
from alignment.regression.queries.test_list import RegressionFilter, regression_filters, regression_rows
from alignment.regression.services.control import regression_pause, regression_resume
from alignment.regression.services.releases import (
    may_release,
    release,
    release_answer,
    release_ask,
    release_problem,
)
from alignment.regression.services.tests import regression_cancel
from alignment.regression.worker import runs_of
from common.access import permission_or_404
from common.problems import InputProblem
from evaluation.runs.queries.redact_errors import redact_errors
from evaluation.runs.views.control import Control, perform_action, polls, replace_page, resume_form
from labeling.models.people import User

PAGE = 50
CONTROL = Control(
    name="Regression test",
    url="alignment:regression_detail",
    argument="test",
    services={"pause": regression_pause, "resume": regression_resume, "cancel": regression_cancel},
)


@permission_or_404("labeling.see_judge")
@require_safe
def regression_list(request: HttpRequest) -> HttpResponse:
    """List the tests, newest first, filtered by the query string."""
    only = RegressionFilter(request.GET.get("criterion", ""), request.GET.get("state", ""))
    page = Paginator(regression_rows(only), PAGE).get_page(request.GET.get("page"))
    rows = list(page)
    hide_small_counts(rows, user=request.user)
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
    """Show one test: progress, the gate's answer and its counts; no single chats.

    The page requests its progress with the states it has `seen`; after a change the whole page reloads.
    """
    test, user = get_object_or_404(regression_tests(), pk=test_id), cast(User, request.user)
    hide_small_counts([test], user=user)
    redact_errors(runs_of(test), user=user)
    again = polls(request)
    if again and request.GET.get("seen") == (progress := regression_progress(test))["seen"]:
        return render(request, "alignment/regression/_progress.html", progress)
    response = _page(request, test, OverrideForm())
    return replace_page(response) if again else response


@permission_or_404("labeling.edit_prompts")
@require_POST
def regression_act(request: HttpRequest, test_id: int, act: str) -> HttpResponse:
    """Pause, resume or cancel; the page shows a refusal."""
    test = get_object_or_404(RegressionTest, pk=test_id)
    return perform_action(request, CONTROL, test, act)


@permission_or_404("labeling.edit_prompts")
@require_POST
def regression_release(request: HttpRequest, test_id: int) -> HttpResponse:
    """Release the candidate; if that needs an override, only with a reason.

    After a refusal the page shows the problem and keeps the reason.
    """
    test, user = get_object_or_404(regression_tests(), pk=test_id), cast(User, request.user)
    if not may_release(test=test, user=user):
        raise Http404
    override = test.state == RegressionTest.State.DONE and bool(override_reasons(test))
    form = OverrideForm(request.POST)
    try:
        if override and not form.is_valid():
            raise InputProblem(str(form.errors["reason"][0]).rstrip("."))
        reason = form.cleaned_data["reason"] if override else ""
        release(test=test, by=user, reason=reason, override=override)
    except InputProblem as problem:
        messages.error(request, f"Not released: {problem}.")
        hide_small_counts([test], user=user)
        redact_errors(runs_of(test), user=user)
        return _page(request, test, form if override else OverrideForm())
    messages.success(request, "Released. New runs use this candidate; older runs keep their prompts.")
    return redirect("alignment:regression_detail", test.pk)


@permission_or_404("labeling.edit_prompts")
@require_POST
def release_asked(request: HttpRequest, test_id: int) -> HttpResponse:
    """Ask the leads to release the candidate."""
    test = get_object_or_404(regression_tests(), pk=test_id)
    try:
        release_ask(test=test, note=request.POST.get("note", ""), by=cast(User, request.user))
    except InputProblem as problem:
        messages.error(request, f"Not asked: {problem}.")
    else:
        messages.success(request, "Asked. The leads have it in their inbox, and you get the answer in yours.")
    return redirect("alignment:regression_detail", test.pk)


@permission_or_404("labeling.release_prompts")
@require_POST
def release_answered(request: HttpRequest, test_id: int, request_id: int) -> HttpResponse:
    """Refuse a release or ask for more labels, with a reason."""
    row = get_object_or_404(ReleaseRequest, pk=request_id, regression=test_id)
    answer, reason = request.POST.get("answer", ""), request.POST.get("reason", "")
    try:
        release_answer(request=row, answer=answer, reason=reason, by=cast(User, request.user))
    except InputProblem as problem:
        messages.error(request, f"Not answered: {problem}.")
    else:
        messages.success(request, f"Answered. {row.by} finds it in the inbox.")
    return redirect("alignment:regression_detail", test_id)


def _page(request: HttpRequest, test: RegressionTest, override: OverrideForm) -> HttpResponse:
    user = cast(User, request.user)
    more = {"name": regression_name(test), "override": override, "requests": release_requests(test)}
    tests = candidate_tests(test)
    decided = test.state == RegressionTest.State.DONE
    more |= {"tests": tests, "needs_override": override_reasons(test, tests) if decided else ()}
    context = regression_page(test, user) | _can(test, user) | more
    return render(request, "alignment/regression/detail.html", context)


def _can(test: RegressionTest, user: User) -> dict[str, Any]:
    """Return the actions that the user may take, and a problem that prevents a release."""
    over = test.state == RegressionTest.State.DONE and test.released_at is None
    return {
        "controls": test.is_open and user.has_perm("labeling.edit_prompts"),
        "resume": resume_form(test.candidate_run.budget_usd),
        "problem": release_problem(test) if over else "",
        "may_release": may_release(test=test, user=user),
    }
