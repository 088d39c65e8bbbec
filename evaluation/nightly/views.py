"""Pages of sample plans for leads: list, form with preview, one plan with its nights."""

from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from common.problems import FieldProblem, InputProblem
from evaluation.models.nightly import NightlyJudge
from evaluation.nightly.forms import PlanForm
from evaluation.nightly.queries import judge_problem, night_rows, plan_preview, plan_rows
from evaluation.nightly.services import night_sample, night_start, nightly_plan_save
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.sampling.queries import yesterday
from labeling.sampling.services import plan_pause, plan_resume

NIGHTS_A_PAGE = 30
RUNS_PLANS = permission_or_404("labeling.start_runs")


@RUNS_PLANS
@require_safe
def plan_list(request: HttpRequest) -> HttpResponse:
    """All plans with their last night."""
    return render(request, "evaluation/nightly/list.html", {"rows": plan_rows()})


@RUNS_PLANS
@require_http_methods(["GET", "POST"])
def plan_new(request: HttpRequest) -> HttpResponse:
    """Create a plan."""
    return _form(request, None)


@RUNS_PLANS
@require_http_methods(["GET", "POST"])
def plan_edit(request: HttpRequest, plan_id: int) -> HttpResponse:
    """Change a plan; nights that were sampled stay as they are."""
    return _form(request, get_object_or_404(SamplePlan, pk=plan_id))


@RUNS_PLANS
@require_POST  # writes nothing; the form may be too long for an address
def preview(request: HttpRequest) -> HttpResponse:
    """The allocation of the form's sample on yesterday's chats, a fragment beside it."""
    form = PlanForm(request.POST)
    form.is_valid()
    context: dict[str, Any] = {"form": form}
    if (size := form.size) is not None:
        text = request.POST.get("plan", "")
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
        plan = SamplePlan.objects.filter(pk=number).first()
        context["preview"] = plan_preview(size=size, audit_share=form.audit_share, plan=plan)
    return render(request, "evaluation/nightly/_preview.html", context)


@RUNS_PLANS
@require_safe
def plan_detail(request: HttpRequest, plan_id: int) -> HttpResponse:
    """One plan: its settings, its nights, and what stopped a judge."""
    plan = _plan(plan_id)
    page = Paginator(plan.draws.order_by("-day"), NIGHTS_A_PAGE).get_page(request.GET.get("page"))
    draws = SampleDraw.objects.filter(pk__in=[draw.pk for draw in page])
    judge = NightlyJudge.objects.select_related("profile", "anchor_set").get(plan=plan)
    context = {
        "plan": plan,
        "judge": judge,
        "judge_problem": judge_problem(judge),
        "rows": night_rows(draws, whole=True),
        "page_obj": page,
        "limits": _limits(plan),
        "team": _team(plan),
        "criteria": [row.name for row in plan.criteria.filter(state=Criterion.State.ACTIVE)],
        "sampled_yesterday": plan.draws.filter(day=yesterday()).exists(),
    }
    return render(request, "evaluation/nightly/detail.html", context)


@RUNS_PLANS
@require_POST
def plan_act(request: HttpRequest, plan_id: int, act: str) -> HttpResponse:
    """Pause or resume the plan, or sample yesterday now; then show its page."""
    plan, by = _plan(plan_id), cast(User, request.user)
    if act == "pause":
        plan_pause(plan=plan, by=by)
        messages.success(request, f"{plan.name} is paused: no further night is sampled.")
    elif act == "resume":
        plan_resume(plan=plan, by=by)
        messages.success(request, f"{plan.name} samples again, from today’s chats on.")
    elif act == "sample":
        _sample_yesterday(request, plan, by)
    else:
        raise Http404
    return redirect("evaluation:sample_plan", plan.pk)


@RUNS_PLANS
@require_POST
def night_judge(request: HttpRequest, plan_id: int, draw_id: int) -> HttpResponse:
    """Start the judge on a night whose judge could not start; then show the plan."""
    draw = get_object_or_404(SampleDraw, pk=draw_id, plan=plan_id, sampled__gt=0)
    night = night_start(draw=draw)
    if night.run_id:
        messages.success(request, f"Run {night.run_id} judges the chats of {draw.day}.")
    else:
        messages.error(request, f"Not started: {night.problem}")
    return redirect("evaluation:sample_plan", plan_id)


def _plan(plan_id: int) -> SamplePlan:
    plans = SamplePlan.objects.select_related("rubric", "group", "created_by")
    return get_object_or_404(plans.prefetch_related("raters__rater"), pk=plan_id)


def _limits(plan: SamplePlan) -> str:
    """Return the limits of a topic in words; "" for none."""
    least = f"at least {plan.minimum:,} a topic" if plan.minimum else ""
    most = f"at most {plan.maximum:,} a topic" if plan.maximum else ""
    return ", ".join(filter(None, (least, most)))


def _team(plan: SamplePlan) -> list[str]:
    """Return the plan's group and raters by name."""
    names = [str(getattr(user, "rater", None) or user.get_username()) for user in plan.raters.all()]
    return [plan.group.name, *names] if plan.group else names


def _form(request: HttpRequest, plan: SamplePlan | None) -> HttpResponse:
    form = PlanForm(request.POST or None, plan=plan)
    if request.method == "POST" and form.is_valid():
        try:
            saved = nightly_plan_save(
                settings=form.settings, judge=form.judge, by=cast(User, request.user), plan=plan
            )
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            words = "saved. The next night uses it" if plan else "created. It samples today’s chats tonight"
            messages.success(request, f"Plan {saved.name} {words}.")
            return redirect("evaluation:sample_plan", saved.pk)
    return render(request, "evaluation/nightly/form.html", {"form": form, "plan": plan})


def _sample_yesterday(request: HttpRequest, plan: SamplePlan, by: User) -> None:
    try:
        draw = night_sample(plan=plan, day=yesterday(), by=by)
    except InputProblem as refused:
        messages.error(request, f"Not sampled: {refused}")
    else:
        messages.success(request, f"{draw.sampled:,} of {draw.frame_size:,} chats of {draw.day} sampled.")
