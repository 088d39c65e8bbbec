"""Label plan: the labels that each decision needs, and a form that samples chats for labelling."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from alignment.comparison.queries.filters import chosen_filter
from alignment.comparison.queries.scope import Scope
from alignment.comparison.views import comparison_view, run_and_scope
from alignment.label_planning.core import sample_advice
from alignment.label_planning.forms import SampleForm, random_seed
from alignment.label_planning.queries.pending_labels import pending_jobs, samples_without_job
from alignment.label_planning.queries.plan import CriterionPlan, criterion_plans, topic_labels
from alignment.label_planning.queries.sampling_frame import sampling_frame
from alignment.label_planning.services.sample import create_sample
from alignment.label_planning.services.sample_preview import NoEligibleChats, preview_sample
from alignment.reports.queries.page import notices, scope_filters, scope_query
from common.access import permission_or_404
from common.problems import InputProblem
from labeling.chats.services.chat_sets import NAME_LIMIT
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.people.queries.visibility import labels_too

MANAGES = permission_or_404("labeling.manage_labeling")
SEES = permission_or_404("labeling.see_judge")


@SEES
@MANAGES
@require_http_methods(["GET", "POST"])
@comparison_view
def label_plan(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the needs of every criterion, `?criterion=` in detail; POST creates a sample."""
    scope = _scope(request, run_id)
    user = cast(User, request.user)
    plans = criterion_plans(scope)
    focus = _focus(request, plans)
    topics = topic_labels(scope, criteria=[focus.criterion], user=user)
    if request.method != "POST":
        form = SampleForm(initial=_initial(scope, focus), scope=scope, topics=topics)
    else:
        form = SampleForm(request.POST, scope=scope, topics=topics)
        if form.is_valid() and (sample := _created(request, form, user)):
            query = {"criterion": focus.criterion.key, "drawn": sample.pk}
            url = reverse("alignment:label_plan", args=[run_id], query=query)
            return redirect(f"{url}{scope_query(scope, start='&')}#drawn")
    frame = sampling_frame(scope, criteria=[focus.criterion], user=user)
    suspect = frame.size(suspect=True)
    jobs = pending_jobs(scope)
    context = {
        "scope": scope,
        "run": scope.run,
        "plans": [(plan, jobs.get(plan.criterion.pk, [])) for plan in plans],
        "focus": focus,
        "advice": sample_advice(focus.status, focus.shares, available=suspect),
        "jobs": jobs.get(focus.criterion.pk, []),
        "samples_without_job": samples_without_job(scope, criteria=[focus.criterion]),
        "none_eligible": not form.is_bound and not frame.strata,
        "lacking": sum(not plan.status.met for plan in plans),
        "topics": [row for row in topics if not row.small],
        "small_topics": [row for row in topics if row.small],
        "form": form,
        "new_sample": _new_sample(request, scope),
        "filters": _filters(scope, plans, focus),
        "report_url": reverse("alignment:report_run", args=[run_id]) + scope_query(scope),
        "scope_query": scope_query(scope),
        "scope_after": scope_query(scope, start="&"),
        "labels_too": labels_too(user=user),
        "notices": notices(scope),
    }
    return render(request, "alignment/label_planning/plan.html", context)


@SEES
@MANAGES
@require_safe
def label_draw_estimate(request: HttpRequest, run_id: int) -> HttpResponse:
    """Preview the sample of the form: the panel beside it."""
    scope, user = _scope(request, run_id), cast(User, request.user)
    topics = topic_labels(scope, criteria=scope.criteria, user=user)
    form = SampleForm(request.GET, scope=scope, topics=topics)
    context: dict[str, Any] = {"form": form, "run": scope.run, "labels_too": labels_too(user=user)}
    if form.is_valid():
        try:
            context["preview"] = preview_sample(form.wish(by=user), by=user)
        except NoEligibleChats:
            context["none_eligible"] = True
        except InputProblem as problem:
            context["problem"] = str(problem)
    return render(request, "alignment/label_planning/_preview.html", context)


def _scope(request: HttpRequest, run_id: int) -> Scope:
    """Return the scope against the consensus; 404 for a run without a chat set."""
    run, scope = run_and_scope(request, run_id)
    if run.chat_set_id is None or not scope.criteria:
        raise Http404
    return replace(scope, against="consensus")


def _focus(request: HttpRequest, plans: Sequence[CriterionPlan]) -> CriterionPlan:
    """Return the criterion of the query; by default the first that needs labels, else the first."""
    key = request.GET.get("criterion")
    if not key:
        return next((plan for plan in plans if not plan.status.met), plans[0])
    plan = next((one for one in plans if one.criterion.key == key), None)
    if plan is None:
        raise Http404
    return plan


def _initial(scope: Scope, focus: CriterionPlan) -> dict[str, Any]:
    return {"criteria": [focus.criterion.key], "name": _name(scope), "seed": random_seed(), "minimum": 0}


def _name(scope: Scope) -> str:
    """Return an unused name that does not mention the judge."""
    of = scope.chat_set.name if scope.chat_set else ""
    stem = f"{of[: NAME_LIMIT - 30]}, sample of {timezone.localdate():%-d %b %Y}"
    taken = set(ChatSet.objects.filter(name__startswith=stem).values_list("name", flat=True))
    names = (stem if number == 1 else f"{stem} ({number})" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _created(request: HttpRequest, form: SampleForm, user: User) -> ChatSet | None:
    """Create the sample; a refusal becomes an error of the form."""
    try:
        sample = create_sample(form.wish(by=user), by=user)
    except InputProblem as problem:
        form.add_error(None, str(problem))
        return None
    if sample.again:
        messages.info(request, "This form was already submitted. No second sample was created.")
    return sample.chat_set


def _new_sample(request: HttpRequest, scope: Scope) -> ChatSet | None:
    """Return the sample that the form has just created."""
    number = request.GET.get("drawn", "")
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        return None
    run = scope.run.pk if scope.run else None
    return ChatSet.objects.filter(pk=int(number), sampling__run=run).first()


def _filters(scope: Scope, plans: Sequence[CriterionPlan], focus: CriterionPlan) -> list[dict[str, Any]]:
    criteria = [(plan.criterion.key, plan.criterion.name) for plan in plans]
    part = [one for one in scope_filters(scope) if one["name"] != "against"]
    return [chosen_filter("criterion", focus.criterion.key, criteria, required=True), *part]
