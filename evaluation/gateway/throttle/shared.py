"""The throttle of a worker process: its slots, and the rates and circuit that it shares with all others."""

import asyncio
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Self

from evaluation.gateway.endpoints import endpoint_name
from evaluation.gateway.replies import Outcome
from evaluation.gateway.retries import LONGEST_RETRY_AFTER, OUTAGE, Streak, is_lasting
from evaluation.gateway.throttle.protocol import EndpointDown
from evaluation.gateway.throttle.rules import REQUEST_BURST, Limits, News, State, admit, learn
from evaluation.gateway.throttle.slots import Slots
from evaluation.gateway.throttle.stores import Store

# How long an outage may last before it is raised.
PATIENCE = 600.0
# The same before the first answer: the address may be wrong.
FIRST_PATIENCE = 15.0
# How often an idle process reads the shared state.
LOOK_SECONDS = 1.0
# Shorter waits count as zero: loop timers are not finer.
NOW_SECONDS = 0.001
# How much faster than its limit a process sends overdue requests.
CATCH_UP = 1.5
# The longest pause that an x-ratelimit header can cause.
LONGEST_PAUSE = 60.0
# Outcomes that show a working endpoint.
_WORKS = frozenset({"answered", "refused", "cut_off", "too_long", "empty", "too_big", "bad_request"})
_SERVED = frozenset({"answered", "refused", "cut_off", "empty"})

_estimate: ContextVar[int] = ContextVar("tokens that the request of this task may take")


class SharedThrottle:
    """Implements Throttle. Use as `async with`, inside the loop whose requests it limits.

    `key` is the endpoint's id, used in messages, and the model. At most `most` requests of this process are
    in flight. Without limits and failures the store is read once a second, and a request costs nothing more.
    After `patience` seconds without an answer, or FIRST_PATIENCE before the first one, `enter` raises
    EndpointDown. `total` is a limit that several models share.
    """

    def __init__(
        self,
        *,
        key: tuple[str, str],
        most: int,
        store: Store,
        limits: Limits,
        patience: float,
        probe_every: float,
        total: asyncio.Semaphore | None = None,
    ) -> None:
        self.slots = Slots.remembered(key, most=most)
        self._failing: dict[str, int] = {}  # failures of each call since the last answer
        self._key = key
        self._name = endpoint_name(key[0])
        self._store = store
        self._limits = limits
        self._patience = min(patience, FIRST_PATIENCE)
        self._patience_later = patience
        self._total = total
        self._probe_every = probe_every
        self._state = State()
        self._ahead: float | None = None  # the store's clock minus the loop's; None before the first read
        self._looked_at = 0.0
        self._free_at = 0.0  # when the next request may leave this process at the earliest
        self._news = News()
        self._waiting: list[tuple[int, asyncio.Future[float | None]]] = []
        self._store_task: asyncio.Task[None] | None = None
        self._down: Exception | None = None
        self._trouble, self._trouble_since = "", 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._store_task is not None:
            await asyncio.wait({self._store_task})
        self.slots.remember(self._key)
        await self._store.close()

    async def enter(self, *, tokens: int) -> None:
        """Wait for a slot, the circuit, the endpoint's pause and this request's time."""
        _estimate.set(tokens)
        while True:
            await self._take_slot()
            try:
                wait = await self._admission(tokens)
            except BaseException:
                self.leave()
                raise
            if wait is None:
                return
            # A waiting request frees its slot, so that calls return gradually afterwards.
            self.leave()
            await asyncio.sleep(min(wait, LOOK_SECONDS))

    def seen(self, outcome: Outcome, *, call: str) -> Streak:
        """Learn from an outcome; other workers know it within a second."""
        if outcome.kind in OUTAGE:
            self._failing[call] = self._failing.get(call, 0) + 1
        elif outcome.kind in _WORKS:
            self._failing.clear()
        self._take_in(outcome)
        return Streak(calls=len(self._failing), own=self._failing.get(call, 0))

    def leave(self) -> None:
        """Free the slot."""
        if self._total is not None:
            self._total.release()
        self.slots.leave()

    # ---------- outcomes

    def _take_in(self, outcome: Outcome) -> None:
        if is_lasting(outcome):
            self._down = EndpointDown(f"{self._name}: {outcome.error}", lasting=True)
        self.slots.seen(outcome)
        news = self._news_of(outcome)
        if not news:
            self._news = self._news.then(news)  # corrected tokens are sent with the next request
            return
        was_open = self._state.opened_at is not None
        self._news = self._news.then(news)
        self._state = self._learn(self._state, news)
        if was_open and self._state.opened_at is None:
            self.slots.restart()
        self._start_store_task()

    def _news_of(self, outcome: Outcome) -> News:
        works = outcome.kind in _WORKS
        self._note_trouble(outcome, works)
        return News(
            answered=works and (self._state.failures > 0 or self._state.opened_at is not None),
            failures=int(outcome.kind in OUTAGE),
            pause=self._pause(outcome),
            tokens=self._underestimated(outcome),
        )

    def _note_trouble(self, outcome: Outcome, works: bool) -> None:
        if works or outcome.kind == "rate_limited":
            self._patience = self._patience_later  # the endpoint exists
        if works:
            self._trouble = ""
            return
        if not self._trouble:
            self._trouble_since = self._loop_time()
        self._trouble = outcome.error or outcome.kind

    def _pause(self, outcome: Outcome) -> float:
        pause = min(outcome.retry_after or 0.0, LONGEST_RETRY_AFTER)
        if outcome.allowance is None:
            return pause
        return max(pause, min(outcome.allowance.pause(tokens=_estimate.get(1)), LONGEST_PAUSE))

    def _underestimated(self, outcome: Outcome) -> int:
        """Return the tokens of the answer beyond its estimate; negative if it needed fewer."""
        if not self._limits.tokens_per_minute or outcome.kind not in _SERVED:
            return 0
        if outcome.prompt_tokens is None or outcome.completion_tokens is None:
            return 0
        return outcome.prompt_tokens + outcome.completion_tokens - _estimate.get(0)

    def _learn(self, state: State, news: News) -> State:
        return learn(state, self._now(), news, limits=self._limits, probe_every=self._probe_every)

    # ---------- admission

    async def _take_slot(self) -> None:
        await self.slots.enter()
        if self._total is None:
            return
        try:
            await self._total.acquire()
        except BaseException:
            self.slots.leave()
            raise

    async def _admission(self, tokens: int) -> float | None:
        """Return None to go ahead, else the seconds after which to try again, without a slot meanwhile."""
        self._check()
        if self._ahead is None or self._limits or self._state.opened_at is not None:
            if self._ahead is not None and (wait := self._held_up()):
                self._look_again()
                return wait
            due = await self._ask_store(tokens)
            return self._until_probe() if due is None else await self._wait_until(due)
        self._look_again()
        return self._held_up() or None

    def _check(self) -> None:
        """Raise an error if waiting longer cannot help."""
        if self._down is not None:
            raise self._down
        if self._trouble and self._loop_time() - self._trouble_since >= self._patience:
            raise EndpointDown(f"{self._name}: {self._trouble} (no answer for {self._patience:.0f} seconds)")

    def _held_up(self) -> float:
        """Return the seconds until the endpoint's pause ends or the next probe is due; 0 without either."""
        if self._state.opened_at is not None:
            return max(0.0, self._state.probe_at - self._now())
        return max(0.0, self._state.not_before - self._now())

    def _until_probe(self) -> float:
        if not self._trouble:
            self._trouble, self._trouble_since = "the endpoint failed other workers", self._loop_time()
        return max(self._held_up(), 0.05)

    async def _wait_until(self, due: float) -> float | None:
        """Sleep until the reserved time; a pause or an outage in between voids the reservation."""
        waited = False
        # After a stall of this process many requests are due at once; they leave in sequence, only faster.
        while (left := max(due, self._free_at) - self._now()) > NOW_SECONDS:
            waited = True
            await asyncio.sleep(min(left, LOOK_SECONDS))
            self._check()
        if waited and (wait := self._held_up()):
            return wait
        self._free_at = max(self._free_at, self._now() - REQUEST_BURST) + self._limits.request_pace / CATCH_UP
        return None

    # ---------- the store

    async def _ask_store(self, tokens: int) -> float | None:
        """Return this request's time by the store's clock, None if it has none; requests share one query."""
        admission: asyncio.Future[float | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((tokens, admission))
        self._start_store_task()
        return await admission

    def _look_again(self) -> None:
        if self._loop_time() - self._looked_at >= LOOK_SECONDS:
            self._looked_at = self._loop_time()
            self._start_store_task()

    def _start_store_task(self) -> None:
        """Run one step of the store at a time; what arrives meanwhile goes into the next one."""
        if self._store_task is None or self._store_task.done():
            self._store_task = asyncio.get_running_loop().create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            news, self._news = self._news, News()
            requests, self._waiting = self._waiting, []
            try:
                await self._step(news, requests)
            except Exception as error:  # noqa: BLE001 - raised where requests enter
                self._down = error
            for _, admission in requests:
                _settle(admission, self._down)
            if not self._waiting and not self._news:
                return

    async def _step(self, news: News, requests: list[tuple[int, asyncio.Future[float | None]]]) -> None:
        rule = partial(
            admit,
            news=news,
            tokens=[tokens for tokens, _ in requests],
            limits=self._limits,
            probe_every=self._probe_every,
        )
        step = await self._store.change(rule)
        self._looked_at = self._loop_time()
        self._ahead = step.now - self._looked_at
        was_open = self._state.opened_at is not None
        self._state = self._learn(step.state, self._news)  # outcomes during the step are newer
        if was_open and self._state.opened_at is None:
            self._trouble = ""
            self.slots.restart()
        for (_, admission), due in zip(requests, step.result, strict=True):
            if not admission.done():
                admission.set_result(due)

    def _loop_time(self) -> float:
        return asyncio.get_running_loop().time()

    def _now(self) -> float:
        """Return the time by the store's clock."""
        return self._loop_time() + (self._ahead or 0.0)


def _settle(admission: asyncio.Future[float | None], error: Exception | None) -> None:
    """Pass the error to a request that was not admitted."""
    if not admission.done():
        admission.set_exception(error or RuntimeError("a request got no time"))
