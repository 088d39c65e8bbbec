"""Calls in flight follow what the endpoint bears: found quickly, kept, and free where all is well."""

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from evaluation.gateway.replies import Outcome
from evaluation.gateway.throttle.slots import Slots
from tests.virtual_time import run

MOST = 128


@dataclass
class Served:
    """What a simulated endpoint did: outcomes by kind, seconds for all, the limit after each reply."""

    kinds: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    limits: list[int] = field(default_factory=list)

    @property
    def settled(self) -> list[int]:
        """The limits of the second half."""
        return self.limits[len(self.limits) // 2 :]


@dataclass
class Endpoint:
    """Serves `at_once` calls of about a second; refuses the others or lets them wait."""

    at_once: int
    refuses: bool = True
    timeout: float = 1e9
    spread: float = 0.2
    random_refusals: float = 0.0
    serving: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(1)
        self._places = asyncio.Semaphore(self.at_once)

    async def send(self) -> Outcome:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(0.002)
        if self._random.random() < self.random_refusals or (self.refuses and self.serving >= self.at_once):
            return Outcome(kind="rate_limited", status=429, latency_ms=2)
        self.serving += 1
        try:
            async with asyncio.timeout(self.timeout), self._places:
                await asyncio.sleep(self._random.lognormvariate(0, self.spread))
        except TimeoutError:
            return Outcome(kind="timeout", status=None, latency_ms=round(self.timeout * 1000))
        finally:
            self.serving -= 1
        taken = asyncio.get_running_loop().time() - began
        return Outcome(kind="answered", status=200, latency_ms=round(taken * 1000))


def work(*, calls: int, most: int = MOST, **endpoint: float) -> Served:
    """So many calls, each repeated until it is answered."""
    return run(_work(calls, most, endpoint))


async def _work(calls: int, most: int, options) -> Served:
    loop, endpoint, slots, served = asyncio.get_running_loop(), Endpoint(**options), Slots(most), Served()
    began, waits = loop.time(), random.Random(2)
    todo = iter(range(calls))

    async def caller() -> None:
        for _ in todo:
            outcome, tried = await attempt(), 1
            while outcome.kind != "answered":
                await asyncio.sleep(min(30.0, 0.5 * 2**tried) * waits.uniform(0.5, 1))
                outcome, tried = await attempt(), tried + 1

    async def attempt() -> Outcome:
        await slots.enter()
        outcome = await endpoint.send()
        slots.seen(outcome)
        slots.leave()
        served.kinds[outcome.kind] = served.kinds.get(outcome.kind, 0) + 1
        served.limits.append(slots.limit)
        return outcome

    await asyncio.gather(*(caller() for _ in range(most)))
    served.seconds = loop.time() - began
    return served


@pytest.mark.parametrize("at_once", [4, 16, 100])
def test_slots_settle_where_an_endpoint_refuses_more(at_once: int) -> None:
    served = work(at_once=at_once, calls=40 * at_once)
    assert {abs(limit - at_once) <= max(1, at_once // 50) for limit in served.settled} == {True}
    assert served.seconds < 40 * 1.02 / 0.9  # a call takes 1.02 seconds on average
    # The first burst has to be refused; then hardly anybody is.
    assert served.kinds["rate_limited"] - (MOST - at_once) < 3 + 0.02 * 40 * at_once


def test_slots_settle_near_what_an_endpoint_serves_at_once_where_the_others_wait() -> None:
    served = work(at_once=16, refuses=False, calls=4000)
    assert 16 <= min(served.settled) <= max(served.settled) <= 48
    assert served.seconds < 4000 / 16 * 1.02 / 0.95


def test_calls_that_wait_until_they_time_out_are_fewer_at_once_soon() -> None:
    served = work(at_once=16, refuses=False, timeout=5.0, calls=3000)
    assert max(served.settled) < MOST
    assert served.kinds["timeout"] < 0.2 * 3000


@pytest.mark.parametrize("spread", [0.0, 0.3, 0.8])
def test_an_endpoint_that_is_well_gets_all_the_calls_at_once_however_uneven_its_answers(
    spread: float,
) -> None:
    served = work(at_once=10_000, spread=spread, calls=5000)
    assert set(served.settled) == {MOST}
    assert served.kinds == {"answered": 5000}


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1])
def test_refusals_that_have_nothing_to_do_with_the_number_of_calls_do_not_end_them(share: float) -> None:
    served = work(at_once=10_000, random_refusals=share, calls=5000)
    assert min(served.settled) > MOST // 2


def test_after_an_outage_the_calls_return_one_two_four_at_a_time() -> None:
    async def scenario() -> list[int]:
        slots, limits = Slots(16), []
        slots.restart()
        for _ in range(31):
            await slots.enter()
            slots.seen(Outcome(kind="answered", status=200, latency_ms=1000))
            slots.leave()
            limits.append(slots.limit)
        return limits

    limits = run(scenario())
    assert list(dict.fromkeys(limits)) == [2, 4, 8, 16]


def test_slots_are_given_in_order_and_a_cancelled_waiter_loses_none() -> None:
    async def scenario() -> list[int]:
        slots, order = Slots(1), []

        async def waiter(number: int) -> None:
            await slots.enter()
            order.append(number)
            slots.leave()

        await slots.enter()
        tasks = [asyncio.create_task(waiter(number)) for number in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        slots.leave()
        tasks[0].cancel()  # has its slot, and does not know it yet
        await asyncio.gather(*tasks, return_exceptions=True)
        await slots.enter()
        return order

    assert run(scenario()) == [2, 3]


def test_the_next_slots_of_a_process_start_where_the_last_ones_settled() -> None:
    slots = Slots(64, start=9)
    slots.remember(("here", "model"))
    assert Slots.remembered(("here", "model"), most=64).limit == 9
    assert Slots.remembered(("here", "model"), most=4).limit == 4
    assert Slots.remembered(("there", "model"), most=64).limit == 64
    Slots(64).remember(("here", "model"))
    assert Slots.remembered(("here", "model"), most=64).limit == 64
