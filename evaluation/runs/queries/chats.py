"""A stored chat as the engines need it."""

from evaluation.core.types import Chat, Message
from labeling.models.chats import Chat as ChatRow


def core_chat(row: ChatRow) -> Chat:
    """Return the engine's view of a stored chat."""
    return Chat(row.content_hash, tuple(Message(m["n"], m["role"], m["content"]) for m in row.messages))
