"""The chats behind an alert: failing ones of the judged sample, or anchors with another answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from alignment.alerts.core.findings import ANCHOR_BANDS, progress
from alignment.alerts.core.plan_watch import Settings
from alignment.alerts.queries.alerts import (
    ChartMark,
    ChartPoint,
    anchor_figures,
    anchor_points,
    audit_points,
    chart_marks,
    flip_points,
    judged_points,
    label_points,
    steps_of,
)
from alignment.alerts.queries.nights import newest_step
from alignment.models.alerts import Alert, WatchStep
from alignment.statistics.intervals import wilson
from evaluation.models.judges import JudgePrompt
from evaluation.models.nightly import NightlyRun
from evaluation.models.runs import Verdict
from labeling.models.people import User
from labeling.people.queries.visibility import chats_hidden

NIGHTS = 120  # newest ones on a chart
ANCHOR_KINDS = {"stricter": "to_false", "more_lenient": "to_true", "less_consistent": "flipped"}
ANCHOR_TITLES = {
    "to_false": "Passing anchors that fail now",
    "to_true": "Failing anchors that pass now",
    "flipped": "Anchors with another answer",
}


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A row of a chart's table, as the script reads it."""

    name: str
    at: str
    value: str
    low: str
    high: str
    point: ChartPoint


@dataclass(frozen=True, slots=True)
class EvidenceChart:
    """One stream over time; `band` is the baseline: rate, and the bounds within which nothing is an alarm."""

    key: str
    name: str
    unit: str
    rows: list[EvidenceRow]
    band: tuple[float, float, float] | None = None
    marks: list[ChartMark] = field(default_factory=list)

    @property
    def first(self) -> str:
        """The first day."""
        return self.rows[0].at

    @property
    def last(self) -> str:
        """The last day."""
        return self.rows[-1].at


def evidence_charts(alert: Alert, *, user: User | AnonymousUser) -> list[EvidenceChart]:
    """Return the charts that show an alert that the user may see, the one of its first signal first."""
    steps = steps_of(alert, most=NIGHTS)
    figures = anchor_figures(alert, user=user)
    if alert.kind != Alert.Kind.DRIFT:
        return []
    if alert.criterion_id is None:
        whole = _chart("anchors", "Anchors with another answer, all criteria", "answers", flip_points(steps))
        return _marked([whole], steps, alert) if figures else []
    bands = _bands(alert)
    kinds = {one["stream"]: ANCHOR_KINDS.get(one["change"], "flipped") for one in alert.signals}
    kind, key = kinds.get("anchors", "flipped"), alert.criterion_id
    charts = {
        "judged": _chart(
            "judged", "Passing share, judged sample", "verdicts", judged_points(steps, key), bands["judged"]
        ),
        "audit": _chart(
            "audit", "Passing share, raters’ labels", "labels", audit_points(steps, key), bands["audit"]
        ),
    }
    if figures:
        charts["anchors"] = _chart(
            "anchors", ANCHOR_TITLES[kind], "anchors", anchor_points(steps, key, kind), bands[kind]
        )
        charts["labels"] = _chart(
            "labels", "Anchors on which judge and raters agree", "anchors", label_points(steps, key)
        )
    order = [*kinds, *(name for name in charts if name not in kinds)]
    return _marked([charts[name] for name in order if name in charts], steps, alert)


def _marked(charts: Sequence[EvidenceChart], steps: Sequence[WatchStep], alert: Alert) -> list[EvidenceChart]:
    """Those with points, each with the marks that are in its span."""
    marks = chart_marks(steps, alert.criterion_id)
    return [
        replace(one, marks=[mark for mark in marks if one.first <= mark.day.isoformat() <= one.last])
        for one in charts
        if one.rows
    ]


def _bands(alert: Alert) -> dict[str, tuple[float, float, float] | None]:
    """The baselines that are in force, of an alert that has not ended."""
    names = ("judged", "audit", *ANCHOR_BANDS)
    step = newest_step(alert.plan) if alert.ended_at is None else None
    own = step.state.get("criteria", {}).get(str(alert.criterion_id)) if step else None
    if own is None:
        return dict.fromkeys(names)
    anchors = own["anchors"]["bands"] or {}
    found = {"judged": own["judged"]["band"], "audit": own["audit"]["band"], **anchors}
    return {name: tuple(found[name]) if found.get(name) else None for name in names}


def _chart(
    key: str, name: str, unit: str, points: list[ChartPoint], band: tuple[float, float, float] | None = None
) -> EvidenceChart:
    return EvidenceChart(key, name, unit, [_row(point) for point in points], band)


def _row(point: ChartPoint) -> EvidenceRow:
    interval = wilson(point.hits, point.n)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return EvidenceRow(
        point.name,
        point.day.isoformat(),
        f"{point.hits / point.n:.4f}",
        "" if low is None else f"{low:.4f}",
        "" if high is None else f"{high:.4f}",
        point,
    )


def behind(alert: Alert, *, user: User | AnonymousUser) -> QuerySet[Verdict]:
    """Return the verdicts behind an alert, on chats that the user may read, newest first.

    Of the bot, or not yet clear: failing chats since the estimated start. Of the judge: anchors whose answer
    on the newest night is not their baseline answer.
    """
    if alert.kind != Alert.Kind.DRIFT or alert.criterion_id is None:
        return Verdict.objects.none()
    rows = _flipped(alert) if alert.cause == Alert.Cause.JUDGE else _failing(alert)
    for hidden in chats_hidden(user=user):
        rows = rows.exclude(chat__in=hidden)
    return rows.select_related("chat__topic").order_by("-run", "-pk")


def _nights(alert: Alert) -> QuerySet[NightlyRun]:
    nights = NightlyRun.objects.filter(draw__plan=alert.plan_id, draw__day__gte=alert.began_on)
    return nights.filter(draw__drawn_at__lte=alert.ended_at) if alert.ended_at else nights


def _passes_when(alert: Alert) -> bool:
    prompts = JudgePrompt.objects.filter(judge=alert.judge_id or 0, criterion=alert.criterion_id)
    row = prompts.select_related("criterion_version").first()
    return row is None or row.criterion_version.passes_when


def _failing(alert: Alert) -> QuerySet[Verdict]:
    return Verdict.objects.filter(
        run__in=list(_nights(alert).filter(run__isnull=False).values_list("run", flat=True)),
        criterion=alert.criterion_id,
        state=Verdict.State.READ,
        value=not _passes_when(alert),
    )


def _flipped(alert: Alert) -> QuerySet[Verdict]:
    step = newest_step(alert.plan)
    own = step.state.get("criteria", {}).get(str(alert.criterion_id)) if step else None
    answers = (own or {}).get("anchors", {}).get("answers") or {}
    last = _nights(alert).filter(anchor_run__isnull=False).order_by("-draw_id").first()
    if last is None or not answers:
        return Verdict.objects.none()
    passes = _passes_when(alert)
    verdicts = Verdict.objects.filter(
        run=last.anchor_run_id, criterion=alert.criterion_id, state=Verdict.State.READ, value__isnull=False
    )
    other = [
        pk
        for pk, chat, value in verdicts.values_list("pk", "chat", "value")
        if str(chat) in answers and bool(answers[str(chat)]) != (value == passes)
    ]
    return Verdict.objects.filter(pk__in=other)


@dataclass(frozen=True, slots=True)
class WatchRow:
    """A criterion on the plan's page: how far its baselines are, and which streams can raise alarms."""

    name: str
    key: str
    rate: tuple[float, float, float] | None
    judged: str
    anchors: str
    audit: str


def watch_rows(
    state: Mapping[str, Any], names: Mapping[int, tuple[str, str]], settings: Settings
) -> list[WatchRow]:
    """Return what a stored state watches, in the order of `names`: name and key by criterion."""
    criteria, rows = state.get("criteria", {}), []
    for pk, (name, key) in names.items():
        own = criteria.get(str(pk))
        if own is None:
            continue
        now = progress(own, settings)
        rows.append(
            WatchRow(
                name,
                key,
                now.rate,
                _part(now.judged, "night"),
                _part(now.anchors, "night"),
                _part(now.audit, "week"),
            )
        )
    return rows


def _part(collected: tuple[int, int] | None, unit: str) -> str:
    return "Watched" if collected is None else f"Baseline: {collected[0]} of {collected[1]} {unit}s"
