"""Archives of the whole workspace that leads have asked for."""

from django.db import models

from evaluation.models.runs import WorkerLease
from labeling.models.people import User


class WorkspaceArchive(models.Model):
    """An archive that waits for a worker, is being made, or can be downloaded; the newest one is kept."""

    class State(models.TextChoices):
        OPEN = "open", "Waiting for a worker"
        WORKING = "working", "Being made"
        DONE = "done", "Ready"
        FAILED = "failed", "Failed"

    state = models.CharField(max_length=7, choices=State.choices, default=State.OPEN)
    # Rows written, and all.
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True, default="")
    tries = models.PositiveSmallIntegerField(default=0)
    lease = models.ForeignKey(WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    rung_at = models.DateTimeField(null=True, blank=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"Archive {self.pk}"

    @property
    def in_work(self) -> bool:
        """Whether it waits for a worker or is being made."""
        return self.state in (self.State.OPEN, self.State.WORKING)
