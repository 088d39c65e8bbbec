"""Evaluates nights that have ended and weeks whose labels are there, once each."""

import logging
from datetime import date, datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from alignment.alerts.core.findings import findings, settled
from alignment.alerts.core.plan_watch import Settings, Step, WeekMark, add_audit, advance, flip_counts
from alignment.alerts.queries.nights import (
    NightData,
    audit_week,
    due_nights,
    due_weeks,
    gaps,
    newest_step,
    night_data,
    watch_settings,
)
from alignment.alerts.services.alerts import News, drifts_end, drifts_raise, gaps_sync, news_send, snoozes_end
from alignment.models.alerts import AlertSettings, RateMark, WatchStep
from evaluation.models.nightly import NightlyRun
from labeling.models.sampling import SamplePlan

log = logging.getLogger(__name__)

# Older states are not needed again; their counts stay for the charts.
STATES_KEPT = 3


def alerts_work(now: datetime | None = None) -> None:
    """Evaluate what is due of every plan; one that fails does not hold up the others."""
    now = now or timezone.now()
    for plan in SamplePlan.objects.order_by("pk"):
        try:
            plan_work(plan, now=now)
        except Exception:
            log.exception("alerts of sample plan %s failed", plan.pk)
    snoozes_end(timezone.localdate(now))


def plan_work(plan: SamplePlan, *, now: datetime) -> None:
    """Evaluate the due nights of a plan in order, then its due weeks of labels."""
    for night in due_nights(plan, now=now):
        night_watch(night)
    if newest_step(plan) is not None:
        for week in due_weeks(plan, now=now):
            week_watch(plan, week)


@transaction.atomic
def night_watch(night: NightlyRun) -> WatchStep | None:
    """Add a night to the state, and raise, name and end alerts by it. A second call changes nothing."""
    plan = _locked(night.draw.plan_id)
    if night.run is None or WatchStep.objects.filter(draw=night.draw).exists():
        return None
    row = AlertSettings.current()
    settings, last = watch_settings(row), newest_step(plan)
    before = last.state if last else {}
    data = night_data(night, run=night.run)
    step = advance(before, data.night, settings)
    stored = WatchStep.objects.create(
        plan=plan,
        draw=night.draw,
        day=night.draw.day,
        counts=_counts(data, step),
        state=step.state,
    )
    _forget(plan)
    _mark(plan, step.marks)
    news = News()
    drifts_end(plan, step, news, back=settled(before, step.state) - step.judges)
    drifts_raise(plan, findings(step.state), judge=data.judge, day=stored.day, news=news)
    found = gaps(plan, day=stored.day, criteria=list(data.night.criteria), row=row)
    gaps_sync(plan, found, judge=data.judge, day=stored.day, news=news)
    news_send(news, step=stored)
    return stored


@transaction.atomic
def week_watch(plan: SamplePlan, week: date, settings: Settings | None = None) -> WatchStep | None:
    """Add a week's audit labels to the state. A second call changes nothing."""
    plan = _locked(plan.pk)
    last = newest_step(plan)
    if last is None or WatchStep.objects.filter(plan=plan, week=week).exists():
        return None
    labels = audit_week(plan, week)
    state = add_audit(last.state, week, labels.rates, settings or watch_settings())
    counts: dict[str, Any] = {"audit": labels.counts}
    stored = WatchStep.objects.create(plan=plan, week=week, day=labels.last, counts=counts, state=state)
    _forget(plan)
    news = News()
    drifts_end(plan, Step(state), news, back=settled(last.state, state))
    drifts_raise(plan, findings(state), judge=None, day=labels.last, news=news)
    news_send(news, step=stored)
    return stored


def _locked(plan_id: int) -> SamplePlan:
    plans = SamplePlan.objects.select_related("created_by").select_for_update(no_key=True, of=("self",))
    return plans.get(pk=plan_id)


def _counts(data: NightData, step: Step) -> dict[str, Any]:
    """What charts show of a night: passing answers, flips on the anchors, and agreement with their labels."""
    flips = {}
    for key, one in data.night.criteria.items():
        answers = step.state["criteria"][str(key)]["anchors"]["answers"]
        if one.anchors and answers is not None:
            flips[str(key)] = flip_counts(answers, one.anchors)
    criteria = step.state["criteria"]
    return {
        "judged": data.judged,
        "anchors": flips,
        "labels": data.labels,
        "parts": {key: own["part"] for key, own in criteria.items()},
        "judges": sorted(step.judges),
        "bots": list(step.live),
        "watched": sum(own["judged"]["band"] is not None for own in criteria.values()),
    }


def _forget(plan: SamplePlan) -> None:
    steps = WatchStep.objects.filter(plan=plan).order_by("-pk")
    kept = list(steps.values_list("pk", flat=True)[:STATES_KEPT])
    WatchStep.objects.filter(plan=plan, pk__lt=min(kept)).exclude(state={}).update(state={})


def _mark(plan: SamplePlan, marks: tuple[WeekMark, ...]) -> None:
    for one in marks:
        RateMark.objects.update_or_create(
            plan=plan,
            criterion_id=one.criterion,
            week=one.week,
            defaults={"sum": one.sum, "marked": one.marked},
        )
