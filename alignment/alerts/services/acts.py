"""What leads do with alerts: acknowledge, snooze, mute a criterion, accept a new rate, set thresholds."""

from dataclasses import asdict, dataclass
from datetime import date, timedelta

from django.db import transaction
from django.utils import timezone

from alignment.alerts.core.plan_watch import ANSWER_NIGHTS, accept
from alignment.alerts.queries.nights import newest_step
from alignment.alerts.services.alerts import News, accepted_end, news_send
from alignment.models.alerts import Alert, AlertMute, AlertSettings
from common.problems import FieldProblem, InputProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.models.sampling import SamplePlan
from labeling.people.services.audit import audit

LONGEST_SNOOZE = timedelta(days=365)
FEWEST_NIGHTS, MOST_NIGHTS = 2 * ANSWER_NIGHTS, 180


class AlertRefused(InputProblem):
    """An act that this alert does not allow; the message says why."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The settings of alerts, as AlertSettings names them."""

    alarm_percent: float
    tolerance_points: float
    baseline_nights: int
    guard: int
    mark_limit: float
    fewest_verdicts: int
    fewest_chats: int


@transaction.atomic
def alert_acknowledge(*, alert: Alert, by: User) -> Alert:
    """Store who has seen it; it stays open until its cause ends. Repeating it changes nothing."""
    row = _standing(alert)
    if row.acknowledged_at is None:
        row.acknowledged_at, row.acknowledged_by = timezone.now(), by
        row.save(update_fields=["acknowledged_at", "acknowledged_by"])
        audit(actor=by, verb="alert acknowledged", obj=row, subject=row.subject)
    return row


@transaction.atomic
def alert_snooze(*, alert: Alert, until: date, by: User) -> Alert:
    """Hide an alert from leads' tasks until a day. Raises FieldProblem for a wrong day."""
    row, today = _standing(alert), timezone.localdate()
    if not today < until <= today + LONGEST_SNOOZE:
        raise FieldProblem("until", "Choose a day from tomorrow on, within a year.")
    row.snoozed_until, row.snoozed_at, row.snoozed_by = until, timezone.now(), by
    row.save(update_fields=["snoozed_until", "snoozed_at", "snoozed_by"])
    audit(actor=by, verb="alert snoozed", obj=row, subject=row.subject, until=until.isoformat())
    return row


@transaction.atomic
def criterion_mute(*, criterion: Criterion, by: User) -> AlertMute:
    """Notify nobody of this criterion's alerts; they are still listed. Repeating it changes nothing."""
    row, new = AlertMute.objects.get_or_create(criterion=criterion, defaults={"by": by})
    if new:
        audit(actor=by, verb="alerts muted", obj=criterion, criterion=criterion.key)
    return row


@transaction.atomic
def criterion_unmute(*, criterion: Criterion, by: User) -> None:
    """Notify of this criterion's alerts again, from the next one on. Repeating it changes nothing."""
    if AlertMute.objects.filter(criterion=criterion).delete()[0]:
        audit(actor=by, verb="alerts unmuted", obj=criterion, criterion=criterion.key)


@transaction.atomic
def alert_accept(*, alert: Alert, by: User) -> Alert:
    """End a drift's alert and collect the criterion's baseline anew from the next night on.

    Of the bot: the baselines of the judged rate and of the raters' rate. Of the judge: those of the judged
    rate and of the anchors, of all criteria where the alert is about all. Raises AlertRefused for a gap.
    """
    plan = SamplePlan.objects.select_for_update(no_key=True, of=("self",)).get(pk=alert.plan_id)
    row = _standing(alert)
    if row.kind != Alert.Kind.DRIFT:
        raise AlertRefused("only a changed rate can be a new baseline")
    of_judge, news = row.cause == Alert.Cause.JUDGE, News()
    step = newest_step(plan)
    if step is not None and step.state:
        today = timezone.localdate()
        step.state = accept(step.state, criterion=row.criterion_id, of_judge=of_judge, day=today)
        step.save(update_fields=["state"])
    accepted_end(row, by=by, news=news)
    audit(actor=by, verb="alert accepted as baseline", obj=row, subject=row.subject)
    news_send(news)
    row.refresh_from_db()
    return row


@transaction.atomic
def thresholds_save(*, values: Thresholds, by: User) -> AlertSettings:
    """Store the thresholds; baselines that are frozen stay. Raises FieldProblem, by field."""
    _check(values)
    row = AlertSettings.current()
    for name, value in asdict(values).items():
        setattr(row, name, value)
    row.updated_at, row.updated_by = timezone.now(), by
    row.save()
    audit(actor=by, verb="alert settings changed", obj=row, **asdict(values))
    return row


def _check(values: Thresholds) -> None:
    if not 0.1 <= values.alarm_percent <= 50:
        raise FieldProblem("alarm_percent", "Choose 0.1 to 50 percent.")
    if not 0 <= values.tolerance_points <= 20:
        raise FieldProblem("tolerance_points", "Choose 0 to 20 points.")
    if not FEWEST_NIGHTS <= values.baseline_nights <= MOST_NIGHTS:
        raise FieldProblem("baseline_nights", f"Choose {FEWEST_NIGHTS} to {MOST_NIGHTS} nights.")
    if not 30 <= values.guard <= 100_000:
        raise FieldProblem("guard", "Choose 30 to 100,000 anchors.")
    if not 1 <= values.mark_limit <= 20:
        raise FieldProblem("mark_limit", "Choose 1 to 20.")
    for name in ("fewest_verdicts", "fewest_chats"):
        if not 0 <= getattr(values, name) <= 1_000_000:
            raise FieldProblem(name, "Choose 0 to 1,000,000.")


def _standing(alert: Alert) -> Alert:
    row = Alert.objects.select_for_update(of=("self",)).get(pk=alert.pk)
    if row.ended_at is not None:
        raise AlertRefused(f"alert {row.pk} has ended")
    return row
