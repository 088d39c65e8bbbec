"""Trainings of baselines that wait for a worker."""

from django.db import models
from django.utils import timezone

from evaluation.models.runs import Run, WorkerLease


class BaselineTraining(models.Model):
    """A bag of words to train on a run's chats; the row is deleted once its predictions are stored."""

    class State(models.TextChoices):
        OPEN = "open", "Waiting for a worker"
        WORKING = "working", "Being computed"
        FAILED = "failed", "Failed"

    # Pin of the predictions; changed labels need another training.
    pin = models.CharField(max_length=64)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    # The part of the run: the scope's other fields, with days as ISO texts.
    part = models.JSONField()
    state = models.CharField(max_length=7, choices=State.choices, default=State.OPEN)
    # Learned criteria, and all.
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

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds left at the pace so far; None until a criterion is learned."""
        if self.state != self.State.WORKING or not self.done or self.rung_at is None:
            return None
        # NB: enqueued about when the work began, unless the workers were busy.
        return (timezone.now() - self.rung_at).total_seconds() / self.done * (self.total - self.done)
