"""Distinguishes an endpoint that queues calls from one that answers slowly."""

import math
from collections import deque
from dataclasses import dataclass

ROUNDS = 4
SMALLEST_ROUND = 32
# If even quick answers take this many times longer than before, calls may be queued.
SUSPICION = 1.75
# A smaller increase is enough once queueing is known.
CERTAINTY = 1.3
# Slightly more in flight than the endpoint serves at once, so that it never idles.
MARGIN = 1.25
# The share of the answer rate that must remain with fewer calls in flight.
SHARE_KEPT = 0.8


@dataclass(frozen=True, slots=True)
class _Round:
    answers: int
    seconds: float
    quick: float  # the fastest tenth of the answers were at least this quick
    full: bool


@dataclass(slots=True)
class _Trial:
    """Fewer calls in flight, to test whether as many answers arrive."""

    limit: int
    rate: float
    quick: float
    rounds_to_skip: int


class Queueing:
    """Watches latencies by rounds of answers; when they grow, it tries fewer calls in flight.

    If as many answers arrive, the other calls were only waiting. Otherwise all calls are allowed again, and
    the next trial needs a larger increase.
    """

    def __init__(self) -> None:
        self.waiting = False  # more in flight would only wait
        self._queues = False  # a trial has shown that the endpoint queues calls
        self._base = math.inf
        self._suspicion = SUSPICION
        self._trial: _Trial | None = None
        self._latencies: list[float] = []
        self._full = 0
        self._began: float | None = None
        self._rounds: deque[_Round] = deque(maxlen=ROUNDS)

    def answered(self, *, now: float, latency: float, limit: int, full: bool) -> int | None:
        """Add an answer; return a new limit of calls in flight, or None."""
        if self._began is None:
            self._began = now - latency
        self._latencies.append(latency)
        self._full += full
        if len(self._latencies) < max(limit, SMALLEST_ROUND):
            return None
        self._end_round(now)
        return self._judge_trial() if self._trial else self._suspect(limit)

    def forget(self) -> None:
        """Start again without a trial, after another rule changed the limit."""
        self._trial, self._began, self._full = None, None, 0
        self._latencies.clear()
        self._rounds.clear()

    def _end_round(self, now: float) -> None:
        count = len(self._latencies)
        quick = sorted(self._latencies)[count // 10]
        self._rounds.append(_Round(count, now - (self._began or now), quick, self._full >= 0.9 * count))
        self._base = min(self._base, quick)
        self.waiting = self._queues and quick >= self._base * (1 + MARGIN) / 2
        self._latencies.clear()
        self._began, self._full = now, 0

    def _suspect(self, limit: int) -> int | None:
        quick = min(one.quick for one in self._rounds)
        steady = len(self._rounds) == ROUNDS and all(one.full for one in self._rounds)
        if not steady or limit == 1 or quick <= self._suspicion * self._base:
            return None
        fewer = max(1, math.ceil(limit * MARGIN * self._base / quick))
        # Calls in flight beyond the new limit must end first.
        skip = math.ceil(limit / max(fewer, SMALLEST_ROUND))
        self._trial = _Trial(limit, self._rate(), quick, skip)
        self._rounds.clear()
        return fewer

    def _judge_trial(self) -> int | None:
        trial = self._trial
        if trial is None:
            return None
        if trial.rounds_to_skip:
            trial.rounds_to_skip -= 1
            self._rounds.clear()
        if len(self._rounds) < ROUNDS:
            return None
        rate, self._trial = self._rate(), None
        self._rounds.clear()
        self._queues = rate >= SHARE_KEPT * trial.rate
        if self._queues:
            self._suspicion = CERTAINTY
            return None
        self._base, self._suspicion, self.waiting = trial.quick, max(SUSPICION, self._suspicion) * 2, False
        return trial.limit

    def _rate(self) -> float:
        seconds = sum(one.seconds for one in self._rounds)
        return sum(one.answers for one in self._rounds) / seconds if seconds else math.inf
