"""Nightly samples of production chats: plans, one draw a night, and the sampled chats."""

from typing import Self

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q

from labeling.chats.core.allocation import AllocationRule
from labeling.models.chats import Chat, ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric


class SamplePlan(models.Model):
    """Every night a sample of the chats that arrived the day before."""

    class State(models.TextChoices):
        ACTIVE = "active", "Active"
        PAUSED = "paused", "Paused"

    class Rule(models.TextChoices):
        PROPORTIONAL = AllocationRule.PROPORTIONAL.value, "proportional"
        SQRT = AllocationRule.SQRT.value, "square root"
        EQUAL = AllocationRule.EQUAL.value, "equal"
        NEYMAN = AllocationRule.NEYMAN.value, "Neyman"

    name = models.CharField(max_length=80)
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="sample_plans")
    chats = models.PositiveIntegerField()
    rule = models.CharField(max_length=12, choices=Rule.choices, default=Rule.PROPORTIONAL)
    # Chats of each topic: at least, and at most (null: no cap).
    minimum = models.PositiveIntegerField(default=0)
    maximum = models.PositiveIntegerField(null=True, blank=True)
    # From this time of day on, in the site's time zone, yesterday's chats are sampled.
    starts_at = models.TimeField()
    state = models.CharField(max_length=6, choices=State.choices, default=State.ACTIVE)
    # Earlier days are not caught up: the plan did not exist, or was paused.
    first_day = models.DateField()
    # For the raters: a random share of the judged chats, and more of those with a verdict of False.
    audit_share = models.FloatField(default=0)
    oversample = models.PositiveIntegerField(default=0)
    overlap = models.PositiveSmallIntegerField(default=1)
    raters = models.ManyToManyField(User, related_name="+")
    group = models.ForeignKey(Group, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # What raters are asked, and whose verdicts of False are oversampled; none: every active criterion.
    criteria = models.ManyToManyField(Criterion, related_name="+")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="sampleplan_name"),
            models.CheckConstraint(condition=Q(chats__gte=1), name="sampleplan_chats"),
            models.CheckConstraint(
                condition=Q(maximum__isnull=True) | (Q(maximum__gte=1) & Q(maximum__gte=models.F("minimum"))),
                name="sampleplan_maximum",
            ),
            models.CheckConstraint(
                condition=Q(audit_share__gte=0, audit_share__lte=1), name="sampleplan_audit_share"
            ),
            models.CheckConstraint(condition=Q(overlap__gte=1), name="sampleplan_overlap"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def wants_labels(self) -> bool:
        """Whether raters get a part of the sample."""
        return self.audit_share > 0 or self.oversample > 0


class SampleDrawQuerySet(models.QuerySet["SampleDraw"]):
    """Filters of draws."""

    def without_job(self) -> Self:
        """Draws whose plan wants labels, and that have no labelling job yet."""
        wanted = Q(plan__audit_share__gt=0) | Q(plan__oversample__gt=0)
        return self.filter(wanted, chat_set__isnull=False, job__isnull=True, labels_done=False)


class SampleDraw(models.Model):
    """The sample of one night; a day without chats has an empty one."""

    plan = models.ForeignKey(SamplePlan, on_delete=models.PROTECT, related_name="draws")
    # The day whose chats were sampled, in the site's time zone.
    day = models.DateField()
    seed = models.PositiveIntegerField()
    # The plan's settings of that night: {"chats", "rule", "minimum", "maximum"}.
    settings = models.JSONField()
    # [{"topic", "size", "n", "probability"}], every topic with chats.
    strata = models.JSONField(default=list)
    shortfalls = models.JSONField(default=list)
    frame_size = models.PositiveIntegerField(default=0)
    sampled = models.PositiveIntegerField(default=0)
    caught_up = models.BooleanField(default=False)
    chat_set = models.OneToOneField(
        ChatSet, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    # NB: by name, because `evaluation` reads draws and may not import labels.
    job = models.OneToOneField(
        "labeling.LabelingJob", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    # Nothing was to be labelled, or the job is open; `labels_problem`: why it could not be opened.
    labels_done = models.BooleanField(default=False)
    labels_problem = models.CharField(max_length=300, blank=True, default="")
    drawn_at = models.DateTimeField(auto_now_add=True)

    objects = SampleDrawQuerySet.as_manager()

    class Meta:
        ordering = ["-day", "-id"]
        constraints = [models.UniqueConstraint(fields=["plan", "day"], name="sampledraw_once")]

    def __str__(self) -> str:
        return f"{self.plan_id}: {self.day}"


class SampledChat(models.Model):
    """A chat of a night's sample; no chat is sampled twice, by whatever plan."""

    class Source(models.TextChoices):
        NONE = "", "not labelled"
        AUDIT = "audit", "random audit"
        SUSPECT = "suspect", "verdict of False"

    draw = models.ForeignKey(SampleDraw, on_delete=models.PROTECT, related_name="chats")
    chat = models.OneToOneField(Chat, on_delete=models.PROTECT, related_name="+")
    stratum = models.CharField(max_length=200)
    # To be in the sample; then to be in the audit and to be labelled at all, null until the job was made.
    probability = models.FloatField()
    audit_probability = models.FloatField(null=True, blank=True)
    label_probability = models.FloatField(null=True, blank=True)
    label_source = models.CharField(max_length=7, choices=Source.choices, blank=True, default=Source.NONE)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(probability__gt=0, probability__lte=1), name="sampledchat_probability"
            ),
            models.CheckConstraint(
                condition=Q(audit_probability__isnull=True)
                | Q(audit_probability__gte=0, audit_probability__lte=1),
                name="sampledchat_audit_probability",
            ),
            models.CheckConstraint(
                condition=Q(label_probability__isnull=True)
                | Q(label_probability__gte=0, label_probability__lte=1),
                name="sampledchat_label_probability",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.draw_id}: {self.chat_id}"
