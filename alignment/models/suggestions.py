"""Revisions of prompts that a model was asked to draft, and who took them over."""

from django.db import models
from django.db.models import Q

from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import ModelCall, WorkerLease
from labeling.models.people import User
from labeling.models.rubric import Criterion


class Suggestion(models.Model):
    """One question for a revision of a criterion's prompt, frozen when it was asked, and its answer."""

    class State(models.TextChoices):
        OPEN = "open", "Waiting"
        ASKING = "asking", "Asking"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    base = models.ForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="+")
    # The text that the model was to revise: the base's, or the author's draft of then.
    base_text = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    model = models.CharField(max_length=200)
    # {"chats": [{"id", "people", "judge", "run"}], "notes": how many, "note_chats": [ids]}, the chats in the
    # order of the prompt's numbers.
    material = models.JSONField()
    # What is sent, byte for byte, so that whoever takes over asks the same; the call holds it afterwards.
    request = models.JSONField(null=True, blank=True)
    # The content address of the question as its first sample, and which sample was asked.
    question = models.CharField(max_length=64)
    sample = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OPEN)
    error = models.TextField(blank=True, default="")
    tries = models.PositiveSmallIntegerField(default=0)
    lease = models.ForeignKey(WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    rung_at = models.DateTimeField(null=True, blank=True)
    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # Its answer was paid for before.
    reused = models.BooleanField(default=False)
    cost_usd = models.DecimalField(max_digits=20, decimal_places=12, null=True, blank=True)
    text = models.TextField(blank=True, default="")
    reasons = models.TextField(blank=True, default="")
    reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    dismissed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    dismissed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["criterion"], name="suggestion_open_once", condition=Q(state__in=["open", "asking"])
            ),
            models.CheckConstraint(condition=~Q(state="done") | ~Q(text=""), name="suggestion_whole"),
        ]
        indexes = [models.Index(fields=["criterion", "-id"], name="suggestion_newest")]

    def __str__(self) -> str:
        return f"Suggestion {self.pk}"

    @property
    def is_open(self) -> bool:
        """Whether it waits for its answer."""
        return self.state in (self.State.OPEN, self.State.ASKING)

    @property
    def chat_ids(self) -> list[int]:
        """The chats that the model was shown, in the order of their numbers."""
        return [int(chat["id"]) for chat in self.material["chats"]]

    @property
    def told_chat_ids(self) -> list[int]:
        """The chats that its texts may tell of: those shown, and those that the raters' notes are about."""
        return [*self.chat_ids, *self.material.get("note_chats", [])]


class SuggestionUse(models.Model):
    """A suggestion became somebody's draft; what it took the place of is kept."""

    suggestion = models.ForeignKey(Suggestion, on_delete=models.PROTECT, related_name="uses")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    # The draft before, {"base", "text", "examples", "origin"}; null where there was none.
    replaced = models.JSONField(null=True, blank=True)
    # The draft's revision that this made; as long as it stands, the one before can be taken back.
    revision = models.PositiveIntegerField()
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["by", "-id"], name="suggestionuse_newest")]

    def __str__(self) -> str:
        return f"{self.suggestion_id} by {self.by_id}"
