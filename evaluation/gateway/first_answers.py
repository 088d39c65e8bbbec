"""Tells a rejection that every request would meet from one that a single chat provokes."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

# Seconds to wait for the end of another request.
LONGEST_WAIT = 60.0
# Requests of so many chats, rejected without an answer between them, are no accident of their chats.
MOST_CHATS = 2


@dataclass(slots=True)
class _Asked:
    """One model in one role: requests in work, those that wait with a rejection, and their chats."""

    working: int = 0
    waiting: int = 0
    chats: set[int | None] = field(default_factory=set)
    answered: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class FirstAnswers:
    """The first requests to each model in each role, until one is answered."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], _Asked] = defaultdict(_Asked)

    def begin(self, *, model: str, role: str) -> None:
        """Count a request in."""
        self._asked[model, role].working += 1

    def end(self, *, model: str, role: str, answered: bool) -> None:
        """Count a request out."""
        asked = self._asked[model, role]
        asked.working -= 1
        asked.answered = asked.answered or answered
        asked.note()

    async def rejects_all(self, *, model: str, role: str, chat_id: int | None) -> bool:
        """Return whether the endpoint rejects every request of this kind, once that is known.

        It does if it rejects those of several chats before it answers any. With no other request in work, or
        none that ends for a minute, the rejection belongs to its chat alone.
        """
        asked = self._asked[model, role]
        asked.chats.add(chat_id)
        asked.waiting += 1
        asked.note()
        try:
            while not asked.answered:
                if len(asked.chats) >= MOST_CHATS:
                    return True
                if asked.waiting >= asked.working:
                    return False
                try:
                    await asyncio.wait_for(asked.changed.wait(), LONGEST_WAIT)
                except TimeoutError:
                    return False
            return False
        finally:
            asked.waiting -= 1
