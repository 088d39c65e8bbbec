"""Selects the chat whose briefs a placebo debate uses."""

from evaluation.core.types import Chat
from evaluation.models.runs import RunChat
from evaluation.runs.queries.chats import core_chat
from labeling.models.chats import Chat as ChatRow


def placebo_chat(*, run_id: int, chat_id: int) -> Chat | None:
    """Return the run's next chat with other content, in plan order and cyclic; None without one."""
    here = RunChat.objects.get(run=run_id, chat=chat_id)
    content = ChatRow.objects.get(pk=chat_id).content_hash
    others = RunChat.objects.filter(run=run_id).exclude(chat__content_hash=content).order_by("id")
    row = (
        others.filter(pk__gt=here.pk).select_related("chat").first() or others.select_related("chat").first()
    )
    return core_chat(row.chat) if row is not None else None
