"""Prompt revisions suggested by a model, and their use."""

from django.db import models
from django.db.models import Q

from evaluation.models.prompts import PromptVersion
from evaluation.models.questions import StoredQuestion
from labeling.models.people import User
from labeling.models.rubric import Criterion


class Suggestion(StoredQuestion):
    """One request for a revision of a criterion's prompt, frozen when it is made, and its result."""

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    base = models.ForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="+")
    # The text to revise: the base version, or the author's draft at that time.
    base_text = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # {"chats": [{"id", "people", "judge", "run"}], "notes": count, "note_chats": [ids]}; chats in the order
    # of their numbers in the prompt.
    material = models.JSONField()
    text = models.TextField(blank=True, default="")
    reasons = models.TextField(blank=True, default="")
    reason = models.TextField(blank=True, default="")
    dismissed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    dismissed_at = models.DateTimeField(null=True, blank=True)

    class Meta(StoredQuestion.Meta):
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
    def chat_ids(self) -> list[int]:
        """Ids of the chats in the prompt, in the order of their numbers."""
        return [int(chat["id"]) for chat in self.material["chats"]]

    @property
    def told_chat_ids(self) -> list[int]:
        """Ids of chats that its texts may disclose: those in the prompt, and those of the raters' notes."""
        return [*self.chat_ids, *self.material.get("note_chats", [])]


class SuggestionUse(models.Model):
    """A suggestion that became a draft, with the draft that it replaced."""

    suggestion = models.ForeignKey(Suggestion, on_delete=models.PROTECT, related_name="uses")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    # The replaced draft, {"base", "text", "examples", "origin"}; null if there was none.
    replaced = models.JSONField(null=True, blank=True)
    # The draft's revision after the use; while it is current, the replaced draft can be restored.
    revision = models.PositiveIntegerField()
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["by", "-id"], name="suggestionuse_newest")]

    def __str__(self) -> str:
        return f"{self.suggestion_id} by {self.by_id}"
