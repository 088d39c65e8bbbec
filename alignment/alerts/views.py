"""Alerts: list, one alert with its chart and chats, thresholds, and panels of other pages."""

from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from alignment.alerts.core.plan_watch import Settings
from alignment.alerts.forms import SnoozeForm, ThresholdsForm
from alignment.alerts.queries.alerts import SHOWN, alert_list, alert_rows, panel_rows
from alignment.alerts.queries.delays import anchor_plan, consequences
from alignment.alerts.queries.evidence import behind, evidence_charts, watch_rows
from alignment.alerts.queries.nights import newest_step, watch_settings
from alignment.alerts.services.acts import (
    AlertRefused,
    alert_accept,
    alert_acknowledge,
    alert_snooze,
    criterion_mute,
    criterion_unmute,
    thresholds_save,
)
from alignment.models.alerts import Alert, AlertMute, AlertSettings
from alignment.monitoring.queries.criterion import failing_chats
from common.access import permission_or_404
from common.problems import FieldProblem
from evaluation.models.nightly import NightlyJudge
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.models.sampling import SamplePlan

ALERTS_A_PAGE = 50
CHATS_A_PAGE = 20
IN_PANEL = 6
READS = permission_or_404("labeling.see_judge")
LEADS = permission_or_404("labeling.manage_labeling")


@READS
@require_safe
def alert_index(request: HttpRequest) -> HttpResponse:
    """All alerts, the open ones first."""
    shown = request.GET.get("show", "open")
    shown = shown if shown in SHOWN else "open"
    page = Paginator(alert_list(shown), ALERTS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "rows": alert_rows(list(page), user=request.user),
        "page_obj": page,
        "shown": shown,
        "mutes": AlertMute.objects.select_related("criterion", "by").order_by("criterion__key"),
        "watched": NightlyJudge.objects.exists(),
    }
    return render(request, "alignment/alerts/list.html", context)


@READS
@require_safe
def alert_detail(request: HttpRequest, alert_id: int) -> HttpResponse:
    """One alert: what changed, the chart that shows it, and the chats behind it."""
    return _page(request, _alert(alert_id), SnoozeForm())


@LEADS
@READS
@require_POST
def alert_act(request: HttpRequest, alert_id: int, act: str) -> HttpResponse:
    """Acknowledge or snooze an alert, accept the new rate, or mute or unmute its criterion."""
    alert, by = _alert(alert_id), cast(User, request.user)
    try:
        if act == "acknowledge":
            alert_acknowledge(alert=alert, by=by)
            messages.success(request, "Acknowledged. The alert stays open until its cause ends.")
        elif act == "snooze":
            form = SnoozeForm(request.POST)
            if not form.is_valid():
                return _page(request, alert, form)
            try:
                row = alert_snooze(alert=alert, until=form.cleaned_data["until"], by=by)
            except FieldProblem as problem:
                form.add_error("until", problem.message)
                return _page(request, alert, form)
            messages.success(request, f"Snoozed until {row.snoozed_until:%-d %b %Y}.")
        elif act == "accept":
            alert_accept(alert=alert, by=by)
            messages.success(request, "Accepted. The next nights become the new baseline.")
        else:
            _mute(request, alert.criterion, act, by)
    except AlertRefused as refused:
        messages.error(request, f"Nothing changed: {refused}.")
    return redirect("alerts:detail", alert.pk)


@LEADS
@READS
@require_POST
def criterion_act(request: HttpRequest, key: str, act: str) -> HttpResponse:
    """Mute or unmute a criterion; then show the list."""
    _mute(request, get_object_or_404(Criterion, key=key), act, cast(User, request.user))
    return redirect("alerts:list")


def _mute(request: HttpRequest, criterion: Criterion | None, act: str, by: User) -> None:
    if criterion is None or act not in ("mute", "unmute"):
        raise Http404
    if act == "mute":
        criterion_mute(criterion=criterion, by=by)
        messages.success(request, f"Muted: alerts of {criterion.name} are listed but notify nobody.")
    else:
        criterion_unmute(criterion=criterion, by=by)
        messages.success(request, f"Alerts of {criterion.name} notify again.")


def _alert(alert_id: int) -> Alert:
    related = ("criterion", "topic", "plan", "judge", "acknowledged_by", "snoozed_by", "accepted_by")
    return get_object_or_404(Alert.objects.select_related(*related), pk=alert_id)


def _page(request: HttpRequest, alert: Alert, form: SnoozeForm) -> HttpResponse:
    (row,) = alert_rows([alert], user=request.user)
    page = Paginator(behind(alert, user=request.user), CHATS_A_PAGE).get_page(request.GET.get("page"))
    mute = AlertMute.objects.filter(criterion=alert.criterion_id or 0).select_related("by").first()
    context = {
        "row": row,
        "alert": alert,
        "charts": evidence_charts(alert, user=request.user),
        "page_obj": page,
        "chats": failing_chats(list(page)),
        "mute": mute,
        "form": form,
        "other": _other(alert),
        "nights": AlertSettings.current().baseline_nights,
    }
    return render(request, "alignment/alerts/detail.html", context)


def _other(alert: Alert) -> Alert | None:
    """Another standing drift alert of the same criterion: bot and judge have both changed."""
    if alert.criterion_id is None or alert.kind != Alert.Kind.DRIFT:
        return None
    same = Alert.objects.standing().filter(
        plan=alert.plan_id, kind=Alert.Kind.DRIFT, criterion=alert.criterion_id
    )
    return same.exclude(pk=alert.pk).first()


# ---------- thresholds


@LEADS
@READS
@require_http_methods(["GET", "POST"])
def thresholds(request: HttpRequest) -> HttpResponse:
    """The thresholds, with the false alarms that they amount to."""
    row = AlertSettings.current()
    form = ThresholdsForm(request.POST) if request.method == "POST" else ThresholdsForm.of(row)
    if request.method == "POST" and form.is_valid():
        try:
            thresholds_save(values=form.values, by=cast(User, request.user))
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, "Thresholds saved. They hold from the next night on.")
            return redirect("alerts:settings")
    context = {"form": form, "settings": row, "found": consequences(watch_settings(row))}
    return render(request, "alignment/alerts/settings.html", context)


@LEADS
@READS
@require_POST  # writes nothing
def thresholds_preview(request: HttpRequest) -> HttpResponse:
    """False alarms and delays of the form's thresholds, a fragment beside it."""
    form = ThresholdsForm(request.POST)
    found = None
    if form.is_valid():
        values = form.values
        row = AlertSettings(
            alarm_percent=values.alarm_percent,
            tolerance_points=values.tolerance_points,
            baseline_nights=values.baseline_nights,
            guard=values.guard,
            mark_limit=values.mark_limit,
        )
        found = consequences(watch_settings(row))
    return render(request, "alignment/alerts/_consequences.html", {"found": found})


# ---------- parts of other pages


@READS
@require_safe
def panel(request: HttpRequest) -> HttpResponse:
    """The newest standing alerts, a part of the monitoring pages; `criterion` narrows them."""
    key = request.GET.get("criterion", "")
    rows = panel_rows(user=request.user, limit=IN_PANEL, criterion=key)
    context = {"rows": rows, "watched": NightlyJudge.objects.exists()}
    return render(request, "alignment/alerts/_panel.html", context)


@permission_or_404("labeling.start_runs")
@READS
@require_safe
def plan_panel(request: HttpRequest, plan_id: int) -> HttpResponse:
    """What is watched on a plan: baselines by criterion, and what its anchors detect."""
    plan = get_object_or_404(SamplePlan, pk=plan_id)
    judge = NightlyJudge.objects.select_related("anchor_set").filter(plan=plan).first()
    settings, step = watch_settings(), newest_step(plan)
    criteria = Criterion.objects.filter(rubric=plan.rubric_id).order_by("dimension__position", "position")
    names = {row.pk: (row.name, row.key) for row in criteria}
    context = {
        "plan": plan,
        "step": step,
        "rows": watch_rows(step.state, names, settings) if step else [],
        "anchors": _anchors(judge.anchor_set, judge.anchors, settings) if judge else None,
    }
    return render(request, "alignment/alerts/_plan.html", context)


@permission_or_404("labeling.start_runs")
@READS
@require_POST  # writes nothing
def anchor_preview(request: HttpRequest) -> HttpResponse:
    """How soon the chosen anchors name a changed judge, a fragment of the plan's form."""
    chosen, count = request.POST.get("anchor_set", ""), request.POST.get("anchors", "")
    row = ChatSet.objects.filter(pk=int(chosen)).first() if _is_number(chosen) else None
    number = int(count) if _is_number(count) else 0
    size = row.members.count() if row else 0
    context = {"anchors": _anchors(row, min(number or size, size), watch_settings()), "chosen": row}
    return render(request, "alignment/alerts/_anchors.html", context)


def _anchors(row: ChatSet | None, anchors: int, settings: Settings) -> Any:
    return anchor_plan(chat_set=row, anchors=anchors, settings=settings) if row and anchors else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
