"""Alerts as rows, for tests of pages that only read them."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from alignment.models.alerts import Alert, WatchStep
from evaluation.models.runs import Run
from labeling.models.rubric import Rubric
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.sampling.queries import yesterday

SIGNAL = {
    "stream": "judged",
    "change": "lower",
    "evidence": 4.2,
    "before": 0.9,
    "now": 0.8,
    "nights": 3,
}


def make_alert(plan: SamplePlan, **fields: Any) -> Alert:
    """A standing alert of a drift, by default of the whole plan and not yet clear."""
    values: dict[str, Any] = {
        "kind": Alert.Kind.DRIFT,
        "cause": Alert.Cause.UNCLEAR,
        "signals": [SIGNAL],
        "began_on": yesterday() - timedelta(days=3),
        "day": yesterday(),
        "raised_at": timezone.now(),
    } | fields
    values.setdefault("subject", f"{values['kind']} {values['cause']} {Alert.objects.count()}")
    return Alert.objects.create(plan=plan, **values)


def stored_alert(rubric: Rubric, run: Run, *, text: str) -> dict[str, int]:
    """The id of an alert on a stored night: raters must not read any of it."""
    draw = SampleDraw.objects.select_related("plan").latest("pk")
    criterion = rubric.criteria.get(key="polite")
    key = str(criterion.pk)
    WatchStep.objects.create(
        plan=draw.plan,
        draw=draw,
        day=draw.day,
        counts={
            "judged": {key: [45, 50]},
            "anchors": {key: {"to_false": [2, 30], "to_true": [0, 10], "flipped": [2, 40]}},
            "labels": {key: [38, 40]},
            "parts": {key: 0},
            "bots": [text],
        },
        state={},
    )
    row = make_alert(
        draw.plan, criterion=criterion, judge=run.judge, ended_because="", subject=f"{text}-alert"
    )
    return {"alert_id": row.pk}
