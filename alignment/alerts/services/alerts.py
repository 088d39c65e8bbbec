"""Raise, name and end alerts, and tell leads and webhooks of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.urls import reverse
from django.utils import timezone

from alignment.alerts.core.attribution import Cause, Stream
from alignment.alerts.core.findings import Finding
from alignment.alerts.core.plan_watch import Step
from alignment.alerts.queries.nights import Gap
from alignment.models.alerts import Alert, AlertMute, WatchStep
from common.inbox.services import Kind, inbox_add
from common.site_address import site_address
from evaluation.models.judges import Judge
from evaluation.models.outbox import EventKind
from evaluation.outbox.services import outbox_publish_all
from labeling.models.people import Role, User
from labeling.models.sampling import SamplePlan

# So many news of one evaluation have an inbox item each; more of them share one.
ONE_BY_ONE = 3
NEW_JUDGE = "The judge has another model or prompt version."
NEW_TEXT = "The criterion has another text."
BACK = "The rate is back in the range of its baseline."
ACCEPTED = "Accepted as the new baseline."
NOT_ASKED = "The judge no longer asks this criterion."
ENOUGH = "Enough was judged again."
# A gap ends after so many nights in a row without it.
NIGHTS_CLOSED = 7
# A version of the bot that went live so many days around the estimated start belongs to the change.
AROUND = timedelta(days=3)


@dataclass
class News:
    """What an evaluation changed: alerts raised or named, and alerts ended."""

    raised: list[Alert] = field(default_factory=list)
    ended: list[Alert] = field(default_factory=list)


def drifts_end(plan: SamplePlan, step: Step, news: News, *, back: Collection[int] = ()) -> None:
    """End the drift alerts whose streams started anew, or whose rates are `back` in their range."""
    asked = {int(key) for key in step.state["criteria"]}
    for alert in Alert.objects.standing().filter(plan=plan, kind=Alert.Kind.DRIFT):
        if reason := _end_reason(alert, step, asked):
            _end(alert, reason, news)
        elif alert.criterion_id in back and alert.cause != Alert.Cause.JUDGE:
            _end(alert, BACK, news)


def accepted_end(alert: Alert, *, by: User, news: News) -> None:
    """End an alert whose rate somebody accepted, and those that the same rates have raised."""
    rows = Alert.objects.standing().filter(plan=alert.plan_id, kind=Alert.Kind.DRIFT)
    if alert.criterion_id is not None:
        rows = rows.filter(criterion=alert.criterion_id)
    for row in rows.filter(cause__in=(alert.cause, Alert.Cause.UNCLEAR)):
        row.accepted_by = by
        row.save(update_fields=["accepted_by"])
        _end(row, ACCEPTED, news)


def _end_reason(alert: Alert, step: Step, asked: Collection[int]) -> str:
    key = alert.criterion_id
    if key is None:
        return NEW_JUDGE if step.judge else ""
    if key not in asked:
        return NOT_ASKED
    if key in step.questions:
        return NEW_TEXT
    return NEW_JUDGE if alert.cause != Alert.Cause.BOT and key in step.judges else ""


def drifts_raise(
    plan: SamplePlan, found: Sequence[Finding], *, judge: Judge | None, day: date, news: News
) -> None:
    """Raise an alert for each finding that has none; one that was not yet clear gets its cause."""
    rows = Alert.objects.standing().filter(plan=plan, kind=Alert.Kind.DRIFT)
    standing = {(row.criterion_id, row.cause): row for row in rows}
    for one in found:
        cause = Alert.Cause(one.cause.value)
        row = standing.get((one.criterion, cause))
        if row is None and cause != Alert.Cause.UNCLEAR:
            row = standing.pop((one.criterion, Alert.Cause.UNCLEAR), None)
        signals = [signal.as_json() for signal in one.signals]
        if row is None:
            news.raised.append(_raise(plan, one, cause, signals, judge=judge, day=day))
        elif row.cause != cause:
            row.cause, row.subject, row.signals = cause, _subject("drift", cause, one.criterion), signals
            row.named_day, row.named_at, row.judge = day, timezone.now(), judge or row.judge
            row.bot_live_on, row.bot_version = _release(plan, cause, row.began_on, signals)
            row.save()
            news.raised.append(row)
        elif row.signals != signals:
            row.signals = signals
            row.save(update_fields=["signals"])


def _raise(
    plan: SamplePlan,
    one: Finding,
    cause: Alert.Cause,
    signals: list[dict[str, Any]],
    *,
    judge: Judge | None,
    day: date,
) -> Alert:
    named = cause != Alert.Cause.UNCLEAR
    now, began = timezone.now(), _began(plan, one, day)
    live_on, version = _release(plan, cause, began, signals)
    return Alert.objects.create(
        plan=plan,
        kind=Alert.Kind.DRIFT,
        cause=cause,
        criterion_id=one.criterion,
        subject=_subject("drift", cause, one.criterion),
        judge=judge,
        signals=signals,
        began_on=began,
        bot_version=version,
        bot_live_on=live_on,
        day=day,
        named_day=day if named else None,
        raised_at=now,
        named_at=now if named else None,
    )


def _began(plan: SamplePlan, one: Finding, day: date) -> date:
    """The estimated first day of the change: that of the longest signal; for the judge, of its anchors."""
    anchors = [signal for signal in one.signals if signal.stream is Stream.ANCHORS]
    own = anchors if one.cause is Cause.JUDGE and anchors else one.signals
    earliest = day
    for signal in own:
        of_weeks = signal.stream is Stream.AUDIT
        steps = WatchStep.objects.filter(plan=plan, week__isnull=not of_weeks).order_by("-pk")
        places = list(steps.values_list("week" if of_weeks else "day", flat=True)[: max(1, signal.nights)])
        earliest = min([earliest, *places[-1:]])
    return earliest


def _release(
    plan: SamplePlan, cause: Alert.Cause, began: date, signals: Sequence[Mapping[str, Any]]
) -> tuple[date | None, str]:
    """Day and version of the bot that went live nearest to the start of its change; of the judge none."""
    if cause == Alert.Cause.JUDGE:
        return None, ""
    of_weeks = any(one["stream"] == Stream.AUDIT for one in signals)  # a week of labels has no day
    last = began + AROUND + timedelta(days=6 if of_weeks else 0)
    steps = WatchStep.objects.filter(plan=plan, day__gte=began - AROUND, day__lte=last, week=None)
    released = [
        (day, counts["bots"][-1]) for day, counts in steps.values_list("day", "counts") if counts.get("bots")
    ]
    return min(released, key=lambda one: (abs(one[0] - began), one[0]), default=(None, ""))


def gaps_sync(plan: SamplePlan, found: Sequence[Gap], *, judge: Judge, day: date, news: News) -> None:
    """Raise an alert for each gap, and end those that were closed for seven nights in a row."""
    rows = Alert.objects.standing().filter(plan=plan).exclude(kind=Alert.Kind.DRIFT)
    standing = {(row.criterion_id, row.topic_id): row for row in rows}
    for gap in found:
        subject = _subject(gap.kind, "", gap.criterion, gap.topic)
        row = standing.pop((gap.criterion, gap.topic), None)
        if row is None and not gap.raises:
            continue
        if row is None:
            news.raised.append(
                Alert.objects.create(
                    plan=plan,
                    kind=gap.kind,
                    criterion_id=gap.criterion,
                    topic_id=gap.topic,
                    subject=subject,
                    judge=judge,
                    signals=[gap.as_json()],
                    began_on=day,
                    day=day,
                    raised_at=timezone.now(),
                )
            )
        else:
            row.kind, row.subject, row.signals = Alert.Kind(gap.kind), subject, [gap.as_json()]
            row.save(update_fields=["kind", "subject", "signals"])
    for row in standing.values():
        closed = row.signals[0].get("closed", 0) + 1
        row.signals = [{**row.signals[0], "closed": closed}]
        row.save(update_fields=["signals"])
        if closed >= NIGHTS_CLOSED:
            _end(row, ENOUGH, news)


def _subject(kind: str, cause: str, criterion: int | None, topic: int | None = None) -> str:
    return f"{kind} {cause} {criterion or ''} {topic or ''}"


def _end(alert: Alert, reason: str, news: News) -> None:
    alert.ended_at, alert.ended_because = timezone.now(), reason
    alert.save(update_fields=["ended_at", "ended_because"])
    news.ended.append(alert)


# ---------- notices


def news_send(news: News, *, step: WatchStep | None = None) -> None:
    """Tell leads and the plans' owners in their inboxes, and webhooks; nobody of muted criteria."""
    muted = set(AlertMute.objects.values_list("criterion", flat=True))
    raised = [one for one in news.raised if one.criterion_id not in muted]
    ended = [one for one in news.ended if one.criterion_id not in muted]
    outbox_publish_all(kind=EventKind.ALERT_RAISED, payloads=[alert_event(one) for one in raised])
    outbox_publish_all(kind=EventKind.ALERT_ENDED, payloads=[alert_event(one) for one in ended])
    shown = [one for one in raised if not is_snoozed(one)]
    if step is not None and len(shown) > ONE_BY_ONE:
        _tell(shown[0].plan, f"alerts:{step.pk}")
        return
    for one in shown:
        _tell(one.plan, f"alert:{one.pk}")


def is_snoozed(alert: Alert) -> bool:
    """Whether somebody does not want to see it before a later day."""
    return alert.snoozed_until is not None and alert.snoozed_until > timezone.localdate()


def _tell(plan: SamplePlan, subject: str) -> None:
    people = list(User.objects.filter(groups__name=Role.LEAD, is_active=True).distinct().order_by("pk"))
    owner = plan.created_by
    if owner is not None and owner.is_active and owner not in people:
        people.append(owner)
    inbox_add(users=people, kind=Kind.ALERT, subject=subject)


def alert_event(alert: Alert) -> Mapping[str, Any]:
    """Return what webhooks are told of an alert; no text of a chat."""
    judge = alert.judge
    return {
        "alert": alert.pk,
        "url": site_address(reverse("alerts:detail", args=[alert.pk])),
        "plan": alert.plan.name,
        "kind": str(alert.kind),
        "cause": str(alert.cause) or None,
        "criterion": alert.criterion.key if alert.criterion else None,
        "topic": alert.topic.key if alert.topic else None,
        "judge": {"name": judge.name, "fingerprint": judge.fingerprint} if judge else None,
        "began_on": alert.began_on.isoformat(),
        "day": alert.day.isoformat(),
        "named_day": alert.named_day.isoformat() if alert.named_day else None,
        "bot_version": alert.bot_version or None,
        "bot_live_on": alert.bot_live_on.isoformat() if alert.bot_live_on else None,
        "ended": alert.ended_because or None,
        "signals": alert.signals,
    }


def snoozes_end(today: date) -> None:
    """Show the alerts again whose snooze has ended, and tell of them once."""
    rows: Iterable[Alert] = Alert.objects.standing().filter(snoozed_until__lte=today)
    woken = list(Alert.objects.filter(pk__in=[row.pk for row in rows]).select_related("plan__created_by"))
    muted = set(AlertMute.objects.values_list("criterion", flat=True))
    for row in woken:
        mine = Alert.objects.filter(pk=row.pk, snoozed_until=row.snoozed_until)
        if mine.update(snoozed_until=None) and row.criterion_id not in muted:
            _tell(row.plan, f"alert:{row.pk}")
