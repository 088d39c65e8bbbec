"""Baselines that somebody waits for."""

from django.db import models

from evaluation.models.runs import Run, WorkerLease


class BaselineTraining(models.Model):
    """A bag of words to be trained on a run's chats; the row goes when its answers are stored."""

    class State(models.TextChoices):
        OPEN = "open", "Waiting for a worker"
        WORKING = "working", "Being computed"
        FAILED = "failed", "Failed"

    # Of the answers that are wanted: labels that change meanwhile are another training.
    pin = models.CharField(max_length=64)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    # The part of the run that is asked about: the scope's other fields, days as ISO texts.
    part = models.JSONField()
    state = models.CharField(max_length=7, choices=State.choices, default=State.OPEN)
    # Criteria that are learned, of how many.
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    tries = models.PositiveSmallIntegerField(default=0)
    lease = models.ForeignKey(WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    rung_at = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pin"], name="baseline_training_pin")]

    def __str__(self) -> str:
        return f"Training {self.pk} of run {self.run_id}"
