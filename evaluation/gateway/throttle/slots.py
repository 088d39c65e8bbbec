"""The plainest throttle: so many calls at once."""

import asyncio

from evaluation.gateway.replies import Outcome


class Slots:
    """Bounds the calls in flight, answers that are not committed yet among them; learns nothing."""

    def __init__(self, max_in_flight: int) -> None:
        self._slots = asyncio.Semaphore(max_in_flight)

    async def enter(self, *, tokens: int) -> None:
        """Wait for a slot."""
        await self._slots.acquire()

    def seen(self, outcome: Outcome) -> None:
        """Nothing that comes back changes the number of slots."""

    def leave(self) -> None:
        """Free the slot."""
        self._slots.release()
