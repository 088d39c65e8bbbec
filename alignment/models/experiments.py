"""Experiments of the chatbot: settings, the verdicts on their chats as metric rows, and stored sums."""

from django.db import models
from django.db.models import Q

from evaluation.models.runs import Run, WorkerLease
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion


class Experiment(models.Model):
    """An experiment that chats carry, its settings, and whether its sums are up to date."""

    class State(models.TextChoices):
        IDLE = "idle", "Up to date"
        DUE = "due", "Waits for a worker"
        WORKING = "working", "Being counted"

    key = models.CharField(max_length=80)
    # A variant's name; "": the first variant by name.
    control = models.CharField(max_length=80, blank=True, default="")
    # {variant: planned share of the units}; {}: the same share for each variant.
    shares = models.JSONField(default=dict, blank=True)
    # Earlier chats do not count; null: all of them.
    starts_on = models.DateField(null=True, blank=True)
    # An interval of a difference misses the true one with this probability, over all days together.
    alpha = models.FloatField(default=0.05)
    # Once a sampled chat was judged, chats outside samples no longer count.
    sampled = models.BooleanField(default=False)
    # As of the last count: runs; units with chats of several variants; chats without a unit or a variant.
    counted_runs = models.PositiveIntegerField(default=0)
    mixed_units = models.PositiveIntegerField(default=0)
    without_unit = models.PositiveIntegerField(default=0)
    without_variant = models.PositiveIntegerField(default=0)
    # For the worker, as evaluation.runs.worker.leased_rows needs them.
    state = models.CharField(max_length=7, choices=State.choices, default=State.DUE)
    lease = models.ForeignKey(WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    tries = models.PositiveSmallIntegerField(default=0)
    rung_at = models.DateTimeField(null=True, blank=True)
    counted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True, blank=True)
    updated_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key"], name="experiment_key"),
            models.CheckConstraint(condition=Q(alpha__gt=0, alpha__lt=1), name="experiment_alpha"),
        ]

    def __str__(self) -> str:
        return self.key


class ExperimentRun(models.Model):
    """A finished run whose verdicts were looked at; `experiment` null: it has none of any experiment."""

    # Rows go with their run, as where an import of verdicts is undone.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    experiment = models.ForeignKey(
        Experiment, on_delete=models.PROTECT, null=True, blank=True, related_name="runs"
    )
    # When the run ended: one that was reopened ends again.
    ended_at = models.DateTimeField()
    # Whether its verdicts are metric rows by now.
    added = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "experiment"], name="experimentrun_once"),
            models.UniqueConstraint(
                fields=["run"], name="experimentrun_none", condition=Q(experiment__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.experiment_id}: {self.run_id}"


class ExperimentMetric(models.Model):
    """A pass or fail of a chat on a criterion: the first one that a finished run stored.

    Rows are added by one worker at a time and never change, so that ids rise in the order in which readers
    can see the rows.
    """

    experiment = models.ForeignKey(Experiment, on_delete=models.PROTECT, related_name="+")
    # Rows go with their run, as where an import of verdicts is undone.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    # The chat's unit_id, else one of its own.
    unit = models.CharField(max_length=200)
    variant = models.CharField(max_length=80, blank=True, default="")
    # When the chat began; its day in the site's time zone.
    at = models.DateTimeField()
    day = models.DateField()
    passed = models.BooleanField()
    # Inverse of the probability with which the chat was sampled; 1 outside samples.
    weight = models.FloatField(default=1.0)
    sampled = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chat", "criterion"], name="experimentmetric_once"),
            models.CheckConstraint(condition=Q(weight__gte=1), name="experimentmetric_weight"),
        ]
        indexes = [
            models.Index(fields=["experiment", "id"], name="experimentmetric_page"),
            models.Index(fields=["experiment", "unit"], name="experimentmetric_unit"),
            models.Index(
                fields=["experiment", "criterion", "variant", "-at"],
                name="experimentmetric_failing",
                condition=Q(passed=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.experiment_id}: {self.chat_id} {self.criterion_id}"


class ExperimentVariant(models.Model):
    """All chats of a variant, judged or not, and their units; as of the last count."""

    experiment = models.ForeignKey(Experiment, on_delete=models.PROTECT, related_name="variants")
    variant = models.CharField(max_length=80)
    chats = models.PositiveIntegerField(default=0)
    units = models.PositiveIntegerField(default=0)
    judged_units = models.PositiveIntegerField(default=0)
    first_day = models.DateField(null=True, blank=True)
    last_day = models.DateField(null=True, blank=True)

    class Meta:
        ordering = ["variant"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "variant"], name="experimentvariant_once")
        ]

    def __str__(self) -> str:
        return f"{self.experiment_id}: {self.variant}"


class ExperimentDay(models.Model):
    """What a day's chats add to a variant's sums over units on a criterion; the sums of all days add up.

    `units`, `passed`, `n`, `passed_squared`, `n_squared`, `product` as in alignment.statistics.sequential;
    `chats` and `failed` count applicable chats, without weights.
    """

    experiment = models.ForeignKey(Experiment, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    variant = models.CharField(max_length=80)
    day = models.DateField()
    chats = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    units = models.IntegerField(default=0)
    passed = models.FloatField(default=0)
    n = models.FloatField(default=0)
    passed_squared = models.FloatField(default=0)
    n_squared = models.FloatField(default=0)
    product = models.FloatField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "criterion", "variant", "day"], name="experimentday_cell"
            )
        ]

    def __str__(self) -> str:
        return f"{self.experiment_id}: {self.day} {self.criterion_id} {self.variant}"
