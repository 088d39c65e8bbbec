"""Chats that an author keeps beside the editor of a criterion's prompt."""

from django.db import models

from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion


class PinnedChat(models.Model):
    """A chat to try every draft on; only its author sees that it is pinned."""

    author = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.CASCADE, related_name="+")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["author", "criterion", "chat"], name="pinnedchat_once")
        ]

    def __str__(self) -> str:
        return f"{self.criterion_id}: {self.chat_id}"
