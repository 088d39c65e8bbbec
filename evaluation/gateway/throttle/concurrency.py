"""How many calls an endpoint can serve at once, learned from its refusals and its queue."""

import math

from evaluation.gateway.throttle.queueing import Queueing

# Up to this share of refusals is cheaper than fewer calls in flight.
TOLERATED_SHARE = 0.01
MOST_CREDIT = 2.0
# After a time-out at most this share of the calls in flight stays.
TIMEOUT_SHARE = 0.9
# A few refusals among few calls do not mean overload if many calls were served a minute ago.
SPORADIC_SHARE = 0.15
PROVEN_SHARE = 0.8
PROVEN_SECONDS = 60.0
# How long the limit stays after a refusal; doubled when the next increase is refused too.
FIRST_HOLD = 5.0
LONGEST_HOLD = 160.0


class Concurrency:
    """Allows `limit` calls in flight: starts at `start`, never exceeds `most`.

    A burst of refusals reduces it once, to the number served meanwhile. After a hold it grows by one, two,
    four, … while no call is refused. Times are seconds of any steady clock.
    """

    def __init__(self, most: int, *, start: int | None = None) -> None:
        self.most = most
        self.limit = min(most, start or most)
        self._queueing = Queueing()
        self._answers = 0  # since the last change of the limit
        self._step = 1
        self._credit = 0.0
        self._hold = FIRST_HOLD
        self._grow_at = 0.0
        self._burst_at = -math.inf
        self._burst, self._refused = 0, 0
        self._proven, self._proven_at = 0, -math.inf

    def answered(self, *, now: float, latency: float, full: bool) -> None:
        """Count an answer; `full` means that every slot is taken."""
        self._answers += 1
        self._credit = min(MOST_CREDIT, self._credit + TOLERATED_SHARE)
        if full and (self.limit >= self._proven or now > self._proven_at + PROVEN_SECONDS):
            self._proven, self._proven_at = self.limit, now
        tried = self._queueing.answered(now=now, latency=latency, limit=self.limit, full=full)
        if tried is not None:
            self.limit, self._answers, self._step = min(self.most, tried), 0, 1
            self._grow_at = now + self._hold
        elif self._answers >= self.limit < self.most and now >= self._grow_at and not self._queueing.waiting:
            self._grow()

    def refused(self, *, now: float, sent_at: float, busy: int, timeout: bool = False) -> None:
        """Count a refusal or time-out of a request sent at `sent_at`, with `busy` slots taken."""
        if self._credit >= 1:
            self._credit -= 1
            return
        if sent_at >= self._burst_at:
            self._burst_at, self._burst, self._refused = now, min(busy, self.limit), 0
        self._refused += 1
        if self._refused > SPORADIC_SHARE * self._burst:
            self._proven = 0
        elif self._burst < PROVEN_SHARE * self._proven and now <= self._proven_at + PROVEN_SECONDS:
            return
        served = self._burst - self._refused
        if timeout:
            served = min(served, math.floor(self._burst * TIMEOUT_SHARE))
        self._cut(now, served)

    def restart(self) -> None:
        """Start over after an outage: one call, then two, four, … instead of all at once."""
        self.limit, self._step, self._answers, self._grow_at = 1, 1, 0, 0.0
        self._queueing.forget()

    def _cut(self, now: float, served: int) -> None:
        if self._step > 1:
            self._hold = min(self._hold * 2, LONGEST_HOLD)
        self.limit = max(1, min(self.limit, served))
        self._step, self._answers = 1, 0
        # If no call was served, the burst does not show how many could be.
        self._grow_at = now + (self._hold if served > 0 else 0.0)
        self._queueing.forget()

    def _grow(self) -> None:
        if self._step > 1:
            self._hold = FIRST_HOLD  # the previous step succeeded
        self.limit = min(self.most, self.limit + self._step)
        self._step, self._answers = self._step * 2, 0
