"""Suggested revisions: the request to the model, reading its answer, passages copied from chats."""

from alignment.prompts.suggestions.core.answer import Drafted, Unreadable, read_answer
from alignment.prompts.suggestions.core.copied import copied_findings
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
    "Drafted",
    "Material",
    "Opinion",
    "Unreadable",
    "copied_findings",
    "read_answer",
    "room_for",
    "shown_part",
    "suggestion_messages",
]
