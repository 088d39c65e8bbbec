"""What authors ask of the leads: a release, a redesign."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from labeling.models.people import User
from labeling.models.rubric import Criterion

LONGEST = 4_000  # characters of a note or a reason


class RequestToLeads(models.Model):
    """A request with a note, and a lead's answer; `answer` is "open" until then."""

    note = models.TextField(blank=True, default="")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    answer = models.CharField(max_length=11, default="open")  # subclasses name the answers
    reason = models.TextField(blank=True, default="")
    answered_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    def store_answer(self, answer: str, *, reason: str = "", by: User | None) -> None:
        """Store a lead's answer."""
        self.answer, self.reason, self.answered_by, self.answered_at = answer, reason, by, timezone.now()
        self.save(update_fields=["answer", "reason", "answered_by", "answered_at"])


class RedesignProposal(RequestToLeads):
    """An author's proposal to redesign a criterion."""

    class Answer(models.TextChoices):
        OPEN = "open", "Open"
        REDESIGNED = "redesigned", "Redesigned"
        REFUSED = "refused", "Refused"

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    answer = models.CharField(max_length=10, choices=Answer.choices, default=Answer.OPEN)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["criterion"], condition=Q(answer="open"), name="one_open_redesign_proposal"
            )
        ]

    def __str__(self) -> str:
        return f"redesign of {self.criterion_id}: {self.answer}"
