"""Finds words of a chat in a suggested prompt: a judge that has read a chat's words knows its answer."""

import re
from collections.abc import Iterator, Sequence

from evaluation.core.prompts import sections
from evaluation.core.prompts.lint import Finding, Level
from evaluation.core.types import Chat

RUN = 8  # so many words in a row that only the chat has
_WORD = re.compile(r"\w+")


def copied_findings(text: str, *, before: str, chats: Sequence[Chat]) -> tuple[Finding, ...]:
    """Return a finding for each section and chat that share words which stood not in the prompt `before`.

    >>> from evaluation.core.types import Message
    >>> chat = Chat("h", (Message(1, "user", "my dog ate the voucher for the blue bicycle"),))
    >>> text = "# Style\\nMy dog ate the voucher for the blue car"
    >>> copied_findings(text, before="", chats=[chat])[0].message
    'repeats words of chat 1: “my dog ate the voucher for the blue”'
    """
    known = set(_runs(before))
    found = [
        Finding(Level.WARNING, name, f"repeats words of chat {n}: “{' '.join(same)}”")
        for name, part in sections(text).items()
        for n, chat in enumerate(chats, start=1)
        if (same := _shared(part, chat, known))
    ]
    return tuple(found)


def _shared(part: str, chat: Chat, known: set[tuple[str, ...]]) -> tuple[str, ...]:
    theirs = {run for message in chat.messages for run in _runs(message.content)} - known
    return next((run for run in _runs(part) if run in theirs), ())


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = [word.casefold() for word in _WORD.findall(text)]
    return (tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1))
