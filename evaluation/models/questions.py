"""What every question that a row asks a model has in common."""

from django.db import models

from evaluation.models.runs import ModelCall, WorkerLease


class StoredQuestion(models.Model):
    """One request to a model, frozen when it is made, and its result."""

    class State(models.TextChoices):
        OPEN = "open", "Waiting"
        ASKING = "asking", "Asking"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    model = models.CharField(max_length=200)
    # The request, byte for byte, so that another worker sends the same; later stored with the call.
    request = models.JSONField(null=True, blank=True)
    # Content address of the request as its first sample, and the number of the sample.
    question = models.CharField(max_length=64)
    sample = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OPEN)
    error = models.TextField(blank=True, default="")
    tries = models.PositiveSmallIntegerField(default=0)
    lease = models.ForeignKey(WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    rung_at = models.DateTimeField(null=True, blank=True)
    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # The answer was reused from an earlier call.
    reused = models.BooleanField(default=False)
    cost_usd = models.DecimalField(max_digits=20, decimal_places=12, null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        ordering = ["-id"]

    @property
    def is_open(self) -> bool:
        """Whether it has no result yet."""
        return self.state in (self.State.OPEN, self.State.ASKING)
