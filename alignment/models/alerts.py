"""Alerts on production: settings, the stored state of the watch, alerts, muted criteria, marks of charts."""

from django.db import models
from django.db.models import Q

from evaluation.models.judges import Judge
from labeling.models.chats import Topic
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.models.sampling import SampleDraw, SamplePlan


class AlertSettings(models.Model):
    """The one row of thresholds."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    # Largest probability of a false alarm in a year, in percent, over all criteria and streams.
    alarm_percent = models.FloatField(default=5.0)
    # A rate may move by so many points before it counts as drift.
    tolerance_points = models.FloatField(default=1.0)
    baseline_nights = models.PositiveSmallIntegerField(default=28)
    # Passing anchors to judge again before an alarm of the judged rate is the bot's.
    guard = models.PositiveIntegerField(default=300)
    # The CUSUM marks a week above this; marks are no alarms.
    mark_limit = models.FloatField(default=4.0)
    # Fewest applicable verdicts of a criterion, and judged chats of a topic, in seven nights; 0: no alert.
    fewest_verdicts = models.PositiveIntegerField(default=100)
    fewest_chats = models.PositiveIntegerField(default=10)
    updated_at = models.DateTimeField(null=True, blank=True)
    updated_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="alertsettings_single"),
            models.CheckConstraint(
                condition=Q(alarm_percent__gt=0, alarm_percent__lt=100), name="alertsettings_percent"
            ),
        ]

    def __str__(self) -> str:
        return "Alert settings"

    @classmethod
    def current(cls) -> "AlertSettings":
        """Return the row, or the defaults where nobody has changed them; it writes nothing."""
        return cls.objects.filter(id=1).first() or cls()


class WatchStep(models.Model):
    """A night, or a week of audit labels, that the watch has seen: once each, with the state after it."""

    plan = models.ForeignKey(SamplePlan, on_delete=models.PROTECT, related_name="+")
    draw = models.OneToOneField(SampleDraw, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # Monday of a week of audit labels; null for a night.
    week = models.DateField(null=True, blank=True)
    # The night's day, or the week's last one.
    day = models.DateField()
    # Counts for charts by criterion: {"judged", "labels", "audit": [passed, n]; "anchors": flips by kind;
    # "parts": another number where a baseline began}; "judges": criteria with another judge; "bots": versions
    # of the bot that went live; "watched": criteria with a frozen baseline.
    counts = models.JSONField(default=dict)
    # alignment.alerts.core.plan_watch; only the newest steps keep theirs.
    state = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "week"], name="watchstep_week"),
            models.CheckConstraint(
                condition=Q(draw__isnull=True, week__isnull=False) | Q(draw__isnull=False, week__isnull=True),
                name="watchstep_night_or_week",
            ),
        ]
        indexes = [models.Index(fields=["plan", "-id"], name="watchstep_newest")]

    def __str__(self) -> str:
        return f"{self.plan_id}: {self.day}"


class AlertQuerySet(models.QuerySet["Alert"]):
    """Filters of alerts."""

    def standing(self) -> "AlertQuerySet":
        """Return those that have not ended."""
        return self.filter(ended_at=None)


class Alert(models.Model):
    """A change or a gap in production. It is open until its cause has ended."""

    class Kind(models.TextChoices):
        DRIFT = "drift", "Drift"
        VERDICTS = "verdicts", "Too few verdicts"
        CHATS = "chats", "Too few judged chats"
        COVERAGE = "coverage", "Topic without judged chats"

    class Cause(models.TextChoices):
        BOT = "bot", "The bot changed"
        JUDGE = "judge", "The judge changed"
        UNCLEAR = "unclear", "Not yet clear"
        NONE = "", "–"

    plan = models.ForeignKey(SamplePlan, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    cause = models.CharField(max_length=7, choices=Cause.choices, blank=True, default=Cause.NONE)
    # Both null: all criteria together.
    criterion = models.ForeignKey(
        Criterion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # What it is about, with its kind and cause: one such alert of a plan is open at a time.
    subject = models.CharField(max_length=60)
    # The judge whose verdicts raised it.
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # Drift: alignment.alerts.core.findings.Signal, one a stream. Else [{"n", "needed", "chats"}].
    signals = models.JSONField(default=list)
    # The estimated first day of the change, the night that raised the alert, the one that named its cause.
    began_on = models.DateField()
    day = models.DateField()
    named_day = models.DateField(null=True, blank=True)
    raised_at = models.DateTimeField()
    named_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_because = models.CharField(max_length=200, blank=True, default="")
    # The version of the bot that went live when the change began.
    bot_version = models.CharField(max_length=80, blank=True, default="")
    bot_live_on = models.DateField(null=True, blank=True)
    # Who accepted the changed rate as the new baseline: that ended the alert.
    accepted_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    # Shown again on this day.
    snoozed_until = models.DateField(null=True, blank=True)
    snoozed_at = models.DateTimeField(null=True, blank=True)
    snoozed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    objects = AlertQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "subject"], condition=Q(ended_at=None), name="alert_open_once"
            ),
            models.CheckConstraint(
                condition=Q(kind="drift") & ~Q(cause="") | ~Q(kind="drift") & Q(cause=""), name="alert_cause"
            ),
        ]
        indexes = [
            models.Index(fields=["ended_at", "-id"], name="alert_listed"),
            models.Index(fields=["judge"], name="alert_of_judge", condition=Q(cause="judge")),
        ]

    def __str__(self) -> str:
        return f"Alert {self.pk}"


class AlertMute(models.Model):
    """A criterion whose alerts are listed but notify nobody."""

    criterion = models.OneToOneField(Criterion, on_delete=models.PROTECT, related_name="+")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.criterion_id}"


class RateMark(models.Model):
    """The CUSUM of a judged rate after a whole week, for the monitoring charts; `marked`: above the limit."""

    plan = models.ForeignKey(SamplePlan, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    week = models.DateField()
    sum = models.FloatField()
    marked = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["plan", "criterion", "week"], name="ratemark_once")]
        indexes = [
            models.Index(fields=["criterion", "week"], name="ratemark_shown", condition=Q(marked=True))
        ]

    def __str__(self) -> str:
        return f"{self.criterion_id}: {self.week}"
