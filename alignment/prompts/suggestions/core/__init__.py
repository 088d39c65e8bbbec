"""Suggested revisions: the request to the model, reading its answer, passages copied from chats."""

from alignment.prompts.suggestions.core.answer import Revision, Unreadable, copied_findings, read_answer
from alignment.prompts.suggestions.core.prompt import (
    Disagreement,
    Material,
    Opinion,
    room_for,
    shown_part,
    suggestion_messages,
)

__all__ = [
    "Disagreement",
    "Material",
    "Opinion",
    "Revision",
    "Unreadable",
    "copied_findings",
    "read_answer",
    "room_for",
    "shown_part",
    "suggestion_messages",
]
