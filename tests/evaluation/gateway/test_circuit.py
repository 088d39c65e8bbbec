"""Trouble at the endpoint: everybody slows down, few probes go out, and no call is used up."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest

from evaluation.gateway.rate_limit_headers import Allowance
from evaluation.gateway.replies import Kind, Outcome
from evaluation.gateway.retries import decide
from evaluation.gateway.throttle import EndpointDown, Limits, SharedThrottle, throttle_for
from evaluation.gateway.throttle.rules import State
from evaluation.gateway.throttle.stores import LocalStore
from tests.virtual_time import run

ANSWER = Outcome(kind="answered", status=200, prompt_tokens=80, completion_tokens=20, latency_ms=1000)
BROKEN = Outcome(kind="server_error", status=500, error="HTTP 500: the endpoint failed", latency_ms=1000)
NO_LIMITS = Limits()
Reply = Callable[[float], Outcome]


class CountingStore(LocalStore):
    """A store in this process that counts the steps."""

    steps = 0

    async def change(self, rule):
        self.steps += 1
        await asyncio.sleep(0.001)
        return await super().change(rule)


@dataclass
class Bench:
    """A few workers' throttles on one store, in virtual time, and what their requests came to."""

    reply: Reply
    workers: int = 2
    in_flight: int = 4
    limits: Limits = NO_LIMITS
    patience: float = 600.0
    sent: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    failed: int = 0
    store: CountingStore = field(init=False)
    throttles: list[SharedThrottle] = field(init=False)

    async def run(self, *, calls: int) -> None:
        self.store = CountingStore(clock=self.now)
        async with AsyncExitStack() as stack:
            self.throttles = [
                await stack.enter_async_context(
                    throttle_for(
                        endpoint="http://endpoint/v1",
                        model=f"model of {id(self)}",
                        max_in_flight=self.in_flight,
                        limits=self.limits,
                        store=self.store,
                        patience=self.patience,
                    )
                )
                for _ in range(self.workers)
            ]
            todo = iter(range(calls))
            async with asyncio.TaskGroup() as group:
                for throttle in self.throttles:
                    for _ in range(self.in_flight):
                        group.create_task(self.work(throttle, todo))

    async def work(self, throttle: SharedThrottle, todo) -> None:
        for number in todo:
            await self.call(throttle, str(number))

    async def call(self, throttle: SharedThrottle, seed: str) -> None:
        """One call with its attempts, as the gateway makes them."""
        tried = 1
        while True:
            await throttle.enter(tokens=100)
            began = self.now()
            self.sent.append(began)
            outcome = self.reply(began)
            await asyncio.sleep(outcome.latency_ms / 1000)
            streak = throttle.seen(outcome, call=seed)
            decision = decide(outcome=outcome, attempt=tried, seed=seed, streak=streak)
            throttle.leave()
            if decision.action == "keep":
                self.answered.append(self.now())
                return
            if decision.action != "again":
                self.failed += 1
                return
            tried += decision.counts
            await asyncio.sleep(decision.wait)

    def now(self) -> float:
        """Seconds since the virtual clock's start."""
        return asyncio.get_running_loop().time() - 1000.0

    def sent_within(self, start: float, end: float) -> list[float]:
        return [time for time in self.sent if start <= time < end]


def outage(start: float, end: float, broken: Outcome = BROKEN) -> Reply:
    return lambda now: broken if start <= now < end else ANSWER


def drive(bench: Bench, *, calls: int) -> Bench:
    run(bench.run(calls=calls))
    return bench


@pytest.mark.parametrize("kind", ["server_error", "connection", "timeout"])
@pytest.mark.parametrize("in_flight", [4, 32])
def test_an_outage_of_five_minutes_fails_no_call_and_costs_a_probe_each_ten_seconds(
    kind: Kind, in_flight: int
) -> None:
    broken = Outcome(kind=kind, status=None, error="no answer", latency_ms=1000)
    bench = drive(Bench(outage(20, 320, broken), in_flight=in_flight), calls=100 * in_flight)
    assert (len(bench.answered), bench.failed) == (100 * in_flight, 0)
    # What was in flight before the fifth failure, its first repetitions, then probes alone.
    probes = bench.sent_within(30, 320)
    assert len(probes) <= 30
    assert all(later - earlier >= 9.99 for earlier, later in itertools.pairwise(probes))
    assert bench.sent_within(320, 332)


def test_nobody_waits_long_at_an_address_where_nobody_ever_answered() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        drive(Bench(outage(0, 300)), calls=200)
    assert "no answer for 15 seconds" in str(raised.value.exceptions[0])


def test_a_call_that_fails_alone_is_given_up_while_the_others_go_on() -> None:
    async def scenario() -> tuple[Bench, int]:
        bench = Bench(lambda now: ANSWER)
        await bench.run(calls=1)
        poisoned = Bench(lambda now: BROKEN)
        throttle = bench.throttles[0]
        async with asyncio.TaskGroup() as group:
            group.create_task(poisoned.call(throttle, "poison"))
            for number in range(20):
                group.create_task(bench.call(throttle, str(number)))
        return bench, poisoned.failed

    bench, failed = run(scenario())
    assert (failed, len(bench.answered)) == (1, 21)


def test_after_an_outage_calls_return_gently() -> None:
    bench = drive(Bench(outage(1, 60), workers=1, in_flight=64), calls=300)
    first = min(time for time in bench.answered if time > 60)
    back = [time for time in bench.sent if first <= time < first + 1.5]
    assert len(back) <= 4


def test_without_an_answer_for_too_long_it_says_so_in_one_line() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        drive(Bench(outage(5, 1e9), patience=60.0), calls=1000)
    down = raised.value.exceptions[0]
    assert isinstance(down, EndpointDown) and not down.lasting
    assert str(down) == "http://endpoint/v1: HTTP 500: the endpoint failed (no answer for 60 seconds)"


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(kind="auth", status=401, error="HTTP 401: the endpoint does not accept the API key"),
        Outcome(kind="bad_request", status=404, error="HTTP 404: the endpoint knows no such model"),
        Outcome(kind="redirect", status=302, error="HTTP 302: the endpoint redirects"),
    ],
    ids=lambda outcome: outcome.kind,
)
def test_what_only_a_person_can_mend_stops_every_further_request_at_once(outcome: Outcome) -> None:
    bench = Bench(lambda now: outcome, workers=1)
    with pytest.raises(ExceptionGroup) as raised:
        drive(bench, calls=100)
    down = raised.value.exceptions[0]
    assert isinstance(down, EndpointDown) and down.lasting
    assert str(down) == f"http://endpoint/v1: {outcome.error}"
    assert len(bench.sent) <= bench.in_flight


@pytest.mark.parametrize("asked", [3.0, 45.0])
def test_retry_after_is_obeyed_by_every_worker_within_a_second(asked: float) -> None:
    refusal = Outcome(kind="rate_limited", status=429, retry_after=asked, latency_ms=50)
    refused: list[float] = []

    def reply(now: float) -> Outcome:
        if now >= 10 and not refused:
            refused.append(now)
            return refusal
        return ANSWER

    bench = drive(Bench(reply, workers=3), calls=1500 if asked < 10 else 600)
    (start,) = refused
    # The others hear of it within a second: they look once a second when all is well.
    assert bench.sent_within(start + 1.1, start + asked) == []
    assert bench.sent_within(start + asked, start + asked + 1.1)
    assert bench.failed == 0


def test_an_hour_of_retry_after_holds_nobody_for_an_hour() -> None:
    refusal = Outcome(kind="rate_limited", status=429, retry_after=3600.0)
    bench = drive(Bench(lambda now: refusal if now < 1 else ANSWER), calls=50)
    assert len(bench.answered) == 50
    assert max(bench.answered) < 200


def test_exhausted_allowances_hold_everybody_up_though_the_answer_came() -> None:
    exhausted = Outcome(
        kind="answered",
        status=200,
        latency_ms=100,
        allowance=Allowance(requests_left=0, requests_reset=20.0),
    )
    bench = drive(Bench(lambda now: exhausted if now < 0.2 else ANSWER), calls=50)
    assert bench.sent_within(1.5, 20.0) == []
    assert len(bench.answered) == 50


def test_tokens_left_for_no_further_request_hold_everybody_up() -> None:
    short = Outcome(
        kind="answered", status=200, latency_ms=100, allowance=Allowance(tokens_left=50, tokens_reset=9.0)
    )
    bench = drive(Bench(lambda now: short if now < 0.2 else ANSWER), calls=50)
    assert bench.sent_within(1.5, 9.0) == []


def test_a_well_endpoint_without_limits_costs_the_store_a_look_a_second() -> None:
    bench = drive(Bench(lambda now: ANSWER, workers=1, in_flight=64), calls=6400)
    assert max(bench.answered) < 101.0
    assert bench.store.steps <= 102


def test_workers_share_one_limit_and_use_all_of_it() -> None:
    bench = drive(Bench(lambda now: ANSWER, workers=4, in_flight=64, limits=Limits(1200)), calls=2000)
    seconds = max(bench.sent)
    assert seconds <= 100 / 0.97
    most = max(len(bench.sent_within(start, start + 10)) for start in bench.sent)
    assert most <= 220


def test_after_a_stall_requests_that_are_all_due_leave_one_after_another() -> None:
    async def scenario() -> list[float]:
        bench, left = Bench(lambda now: ANSWER), list[float]()
        loop = asyncio.get_running_loop()
        async with throttle_for(
            endpoint="e",
            model="stalled",
            max_in_flight=40,
            limits=Limits(requests_per_minute=600),
            store=LocalStore(clock=bench.now),
        ) as throttle:

            async def request() -> None:
                await throttle.enter(tokens=1)
                left.append(bench.now())

            requests = [loop.create_task(request()) for _ in range(40)]
            await asyncio.sleep(1.0)
            loop.stall(2.0)  # type: ignore[attr-defined]
            await asyncio.gather(*requests)
        return left

    left = run(scenario())
    # 10 a second, and half as many again to catch up.
    assert max(sum(start <= time < start + 1.0 for time in left) for start in left) <= 17


def test_token_limits_go_by_what_answers_really_took() -> None:
    # 100 tokens are estimated; the answers take 100, then 25.
    small = Outcome(kind="answered", status=200, prompt_tokens=20, completion_tokens=5, latency_ms=100)
    limits = Limits(tokens_per_minute=60_000)
    slow = drive(Bench(lambda now: ANSWER, in_flight=16, limits=limits), calls=600)
    fast = drive(Bench(lambda now: small, in_flight=16, limits=limits), calls=600)
    assert max(slow.sent) == pytest.approx(60, abs=3)
    assert max(fast.sent) < 25


def test_a_refusal_without_a_time_uses_up_no_call_while_the_limit_is_found() -> None:
    refused = Outcome(kind="rate_limited", status=429, latency_ms=2)
    serving: list[float] = []

    def reply(now: float) -> Outcome:
        serving[:] = [time for time in serving if time > now - 1.0]
        if len(serving) >= 8:
            return refused
        serving.append(now)
        return ANSWER

    bench = drive(Bench(reply, workers=2, in_flight=64), calls=400)
    assert (len(bench.answered), bench.failed) == (400, 0)


def test_a_store_that_fails_is_raised_where_requests_enter() -> None:
    class Broken(LocalStore):
        async def change(self, rule):
            raise OSError("disk full")

    async def scenario() -> None:
        async with throttle_for(
            endpoint="e", model="broken store", max_in_flight=2, limits=Limits(), store=Broken()
        ) as throttle:
            await throttle.enter(tokens=1)

    with pytest.raises(OSError, match="disk full"):
        run(scenario())


def test_an_open_circuit_is_found_by_a_worker_that_starts_later() -> None:
    async def scenario() -> list[float]:
        bench = Bench(lambda now: ANSWER)
        store = LocalStore(clock=bench.now)
        store.state = State(failures=9, opened_at=-100.0, probe_at=7.0)
        async with (
            throttle_for(
                endpoint="e", model="found later", max_in_flight=3, limits=Limits(), store=store
            ) as throttle,
            asyncio.TaskGroup() as group,
        ):
            for number in range(3):
                group.create_task(bench.call(throttle, str(number)))
        return bench.sent

    sent = run(scenario())
    assert sent[0] == pytest.approx(7.0, abs=0.1)
    assert sent[1] >= 8.0  # after the probe's answer


def test_a_pause_asked_for_from_the_start_is_waited_for() -> None:
    refusal = Outcome(kind="rate_limited", status=429, retry_after=45.0)
    bench = drive(Bench(lambda now: refusal if now < 40 else ANSWER), calls=20)
    assert len(bench.answered) == 20
    assert 45 <= min(bench.answered) <= 48
