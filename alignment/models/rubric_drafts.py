"""Definitions of criteria drafted by a model."""

from django.db import models
from django.db.models import Q

from evaluation.models.questions import StoredQuestion
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric


class CriterionDraft(StoredQuestion):
    """One request for the definition of a criterion, frozen when it is made, and its result."""

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="+")
    # The criterion that is edited; null for a new one.
    criterion = models.ForeignKey(
        Criterion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    asked = models.TextField()  # the criterion's question as it stood in the form
    text = models.TextField(blank=True, default="")
    remarks = models.TextField(blank=True, default="")

    class Meta(StoredQuestion.Meta):
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
