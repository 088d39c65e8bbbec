"""Slots for calls in flight of one process: as many as the endpoint can serve."""

import asyncio
from collections import deque

from evaluation.gateway.replies import Outcome
from evaluation.gateway.throttle.concurrency import Concurrency

# A busy server, or its proxy.
_OVERLOADED = (429, 503, 529)

# Each model's limit when this process last stopped calling it.
_borne: dict[tuple[str, str], int] = {}


class Slots:
    """Gives out slots in the order of request.

    At most `most` at once; fewer after the endpoint refused, timed out or queued calls.
    """

    def __init__(self, most: int, *, start: int | None = None) -> None:
        self.busy = 0
        self._concurrency = Concurrency(most, start=start)
        self._waiting: deque[asyncio.Future[None]] = deque()

    @classmethod
    def remembered(cls, key: tuple[str, str], *, most: int) -> "Slots":
        """Return slots that start with this model's last limit in this process."""
        return cls(most, start=_borne.get(key))

    def remember(self, key: tuple[str, str]) -> None:
        """Keep the limit for the next slots of this model, if it was ever reduced."""
        _borne.pop(key, None)
        if self.limit < self._concurrency.most:
            _borne[key] = self.limit

    @property
    def limit(self) -> int:
        """Return how many calls may be in flight now."""
        return self._concurrency.limit

    async def enter(self) -> None:
        """Wait for a slot."""
        if self.busy < self.limit and not self._waiting:
            self.busy += 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if not slot.cancelled():  # assigned and cancelled in one cycle of the loop
                self.leave()
            raise

    def seen(self, outcome: Outcome) -> None:
        """Adapt the limit to an outcome."""
        now = asyncio.get_running_loop().time()
        latency = outcome.latency_ms / 1000
        if outcome.kind in ("rate_limited", "timeout") or outcome.status in _OVERLOADED:
            self._concurrency.refused(
                now=now, sent_at=now - latency, busy=self.busy, timeout=outcome.kind == "timeout"
            )
        elif outcome.kind in ("answered", "refused", "cut_off"):
            self._concurrency.answered(now=now, latency=latency, full=self.busy >= self.limit)
        self._hand_out()

    def leave(self) -> None:
        """Free a slot."""
        self.busy -= 1
        self._hand_out()

    def restart(self) -> None:
        """Let calls return gradually after an outage."""
        self._concurrency.restart()

    def _hand_out(self) -> None:
        while self._waiting and self.busy < self.limit:
            slot = self._waiting.popleft()
            if not slot.done():
                self.busy += 1
                slot.set_result(None)
