"""Find passages that a suggested prompt copied from chats: they would give the judge the answers."""

from collections.abc import Iterator, Sequence

import numpy as np

from evaluation.core.types import Chat
from evaluation.prompts.core import sections
from evaluation.prompts.core.leaks import leaked_passages, shingles_of, shortened
from evaluation.prompts.core.lint import Finding, Level


def copied_findings(text: str, *, before: str, chats: Sequence[Chat]) -> Iterator[Finding]:
    """Yield passages of each section copied from a chat, numbered from 1, unless `before` had them.

    >>> from evaluation.core.types import Message
    >>> chat = Chat("h", (Message(1, "user", "my dog ate the voucher for the blue bicycle"),))
    >>> text = "# Style\\nMy dog ate the voucher for the blue car"
    >>> [finding.message for finding in copied_findings(text, before="", chats=[chat])]
    ['repeats words of chat 1: “My dog ate the voucher for the blue”']
    """
    old = shingles_of([before])
    for number, chat in enumerate(chats, start=1):
        known = np.setdiff1d(shingles_of(message.content for message in chat.messages), old)
        for name, part in sections(text).items():
            for passage in leaked_passages(part, known=known):
                message = f"repeats words of chat {number}: “{shortened(passage)}”"
                yield Finding(Level.WARNING, name, message)
