"""Definitions of criteria drafted by a model."""

from django.db import models
from django.db.models import Q

from evaluation.models.runs import ModelCall, WorkerLease
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric


class CriterionDraft(models.Model):
    """One request for the definition of a criterion, frozen when it is made, and its result."""

    class State(models.TextChoices):
        OPEN = "open", "Waiting"
        ASKING = "asking", "Asking"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="+")
    # The criterion that is edited; null for a new one.
    criterion = models.ForeignKey(
        Criterion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    asked = models.TextField()  # the criterion's question as it stood in the form
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
    text = models.TextField(blank=True, default="")
    remarks = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["rubric", "by"],
                name="criteriondraft_open_once",
                condition=Q(state__in=["open", "asking"]),
            ),
            models.CheckConstraint(condition=~Q(state="done") | ~Q(text=""), name="criteriondraft_whole"),
        ]
        indexes = [models.Index(fields=["rubric", "by", "-id"], name="criteriondraft_newest")]

    def __str__(self) -> str:
        return f"Definition draft {self.pk}"

    @property
    def is_open(self) -> bool:
        """Whether it has no result yet."""
        return self.state in (self.State.OPEN, self.State.ASKING)
