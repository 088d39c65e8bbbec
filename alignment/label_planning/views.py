"""Planning labels: what each decision still needs, and a draw of chats that brings it."""

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
from alignment.comparison.views import run_and_scope
from alignment.label_planning.core import draw_words
from alignment.label_planning.forms import DrawForm, some_seed
from alignment.label_planning.queries.pending_labels import asking_jobs, waiting_draws
from alignment.label_planning.queries.plan import CriterionPlan, criterion_plans, topic_labels
from alignment.label_planning.queries.sampling_frame import label_frame
from alignment.label_planning.services.draw_preview import NothingLeft, label_draw_preview
from alignment.label_planning.services.draws import label_draw
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
def label_plan(request: HttpRequest, run_id: int) -> HttpResponse:
    """The needs of every criterion, `?criterion=` in full; POST draws a set."""
    scope = _scope(request, run_id)
    user = cast(User, request.user)
    plans = criterion_plans(scope)
    focus = _focus(request, plans)
    topics = topic_labels(scope, criteria=[focus.criterion], user=user)
    if request.method != "POST":
        form = DrawForm(initial=_offered(scope, focus), scope=scope, topics=topics)
    else:
        form = DrawForm(request.POST, scope=scope, topics=topics)
        if form.is_valid() and (drawn := _drawn(request, form, user)):
            query = {"criterion": focus.criterion.key, "drawn": drawn.pk}
            url = reverse("alignment:label_plan", args=[run_id], query=query)
            return redirect(f"{url}{scope_query(scope, start='&')}#drawn")
    frame = label_frame(scope, criteria=[focus.criterion], user=user)
    suspect = frame.size(suspect=True)
    asking = asking_jobs(scope)
    context = {
        "scope": scope,
        "run": scope.run,
        "plans": [(plan, asking.get(plan.criterion.pk, [])) for plan in plans],
        "focus": focus,
        "advice": draw_words(focus.badge, focus.shares, there=suspect),
        "asking": asking.get(focus.criterion.pk, []),
        "waiting": waiting_draws(scope, criteria=[focus.criterion]),
        "nothing_left": not form.is_bound and not frame.strata,
        "lacking": sum(not plan.badge.met for plan in plans),
        "topics": [row for row in topics if not row.small],
        "small_topics": [row for row in topics if row.small],
        "form": form,
        "drawn": _made(request, scope),
        "filters": _filters(scope, plans, focus),
        "report_url": reverse("alignment:report_run", args=[run_id]) + scope_query(scope),
        "part_query": scope_query(scope),
        "part_after": scope_query(scope, start="&"),
        "labels_too": labels_too(user=user),
        "notices": notices(scope),
    }
    return render(request, "alignment/label_planning/plan.html", context)


@SEES
@MANAGES
@require_safe
def label_draw_estimate(request: HttpRequest, run_id: int) -> HttpResponse:
    """What the draw in the form would take and may bring: the part of the page beside it."""
    scope, user = _scope(request, run_id), cast(User, request.user)
    topics = topic_labels(scope, criteria=scope.criteria, user=user)
    form = DrawForm(request.GET, scope=scope, topics=topics)
    context: dict[str, Any] = {"form": form, "run": scope.run, "labels_too": labels_too(user=user)}
    if form.is_valid():
        try:
            context["preview"] = label_draw_preview(form.wish(by=user), by=user)
        except NothingLeft:
            context["nothing_left"] = True
        except InputProblem as problem:
            context["problem"] = str(problem)
    return render(request, "alignment/label_planning/_preview.html", context)


def _scope(request: HttpRequest, run_id: int) -> Scope:
    """Against the consensus. Only a run over a set can be drawn from."""
    run, scope = run_and_scope(request, run_id)
    if run.chat_set_id is None or not scope.criteria:
        raise Http404
    return replace(scope, against="consensus")


def _focus(request: HttpRequest, plans: Sequence[CriterionPlan]) -> CriterionPlan:
    """The criterion asked for; else the first that lacks labels, else the first."""
    key = request.GET.get("criterion")
    if not key:
        return next((plan for plan in plans if not plan.badge.met), plans[0])
    found = next((plan for plan in plans if plan.criterion.key == key), None)
    if found is None:
        raise Http404
    return found


def _offered(scope: Scope, focus: CriterionPlan) -> dict[str, Any]:
    return {"criteria": [focus.criterion.key], "name": _name(scope), "seed": some_seed(), "minimum": 0}


def _name(scope: Scope) -> str:
    """A free name that says nothing of the judge."""
    of = scope.chat_set.name if scope.chat_set else ""
    stem = f"{of[: NAME_LIMIT - 30]}, sample of {timezone.localdate():%-d %b %Y}"
    taken = set(ChatSet.objects.filter(name__startswith=stem).values_list("name", flat=True))
    names = (stem if number == 1 else f"{stem} ({number})" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _drawn(request: HttpRequest, form: DrawForm, user: User) -> ChatSet | None:
    """Draw; what the service refuses becomes an error of the form."""
    try:
        made = label_draw(form.wish(by=user), by=user)
    except InputProblem as problem:
        form.add_error(None, str(problem))
        return None
    if made.again:
        messages.info(request, "This form had drawn its chats already: no second set was made.")
    return made.chat_set


def _made(request: HttpRequest, scope: Scope) -> ChatSet | None:
    """The set that was drawn just now."""
    given = request.GET.get("drawn", "")
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        return None
    run = scope.run.pk if scope.run else None
    return ChatSet.objects.filter(pk=int(given), sampling__run=run).first()


def _filters(scope: Scope, plans: Sequence[CriterionPlan], focus: CriterionPlan) -> list[dict[str, Any]]:
    criteria = [(plan.criterion.key, plan.criterion.name) for plan in plans]
    part = [one for one in scope_filters(scope) if one["name"] != "against"]
    return [chosen_filter("criterion", focus.criterion.key, criteria, required=True), *part]
