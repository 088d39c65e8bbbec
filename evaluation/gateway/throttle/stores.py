"""Stores an endpoint's state for all workers: Redis or Valkey, the database, or this process."""

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from django.db import connection, transaction
from redis.asyncio import Redis
from redis.exceptions import RedisError, WatchError

from evaluation.gateway.throttle.rules import Rule, State, Step
from evaluation.models.runs import EndpointState

T = TypeVar("T")

REDIS_SCHEMES = ("redis://", "rediss://")
REDIS_TIMEOUT = 5.0
# An unused state is dropped after a day.
REDIS_EXPIRY = 86_400
# How long a failed Redis is not used; each process uses its own state meanwhile.
REDIS_REST = 5.0
_NAMES = [field.name for field in fields(State)]


class Store(Protocol):
    """One endpoint's state for one model. A step is atomic over all workers, by the store's own clock."""

    async def change(self, rule: Rule[T]) -> Step[T]:
        """Replace the state by the rule's result; a rule may run more than once."""

    async def close(self) -> None:
        """Close connections and threads."""


class LocalStore:
    """Stores the state in this process only."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.state = State()
        self._clock = clock

    async def change(self, rule: Rule[T]) -> Step[T]:
        """Apply the rule."""
        step = rule(self.state, self._clock())
        self.state = step.state
        return step

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


class DatabaseStore:
    """Stores the state in a row of EndpointState, locked while it changes, on its own thread."""

    def __init__(self, *, endpoint: str, model: str) -> None:
        self._key: dict[str, Any] = {"endpoint": short_name(endpoint), "model": short_name(model)}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="endpoint-state")

    async def change(self, rule: Rule[T]) -> Step[T]:
        """Apply the rule off the loop, in a transaction if there is anything to write."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._step, rule)

    async def close(self) -> None:
        """End the thread and its connection."""
        # NB: each thread has its own `connection`.
        await asyncio.get_running_loop().run_in_executor(self._thread, lambda: connection.close())
        self._thread.shutdown()

    def _step(self, rule: Rule[T]) -> Step[T]:
        rows = EndpointState.objects.filter(**self._key)
        before = row_state(rows.first())
        step = rule(before, _database_now())
        if step.state == before:
            return step
        EndpointState.objects.get_or_create(**self._key)
        with transaction.atomic():
            row = rows.select_for_update().get()
            step = rule(row_state(row), _database_now())
            rows.update(**asdict(step.state))
        return step


class RedisStore:
    """Stores the state in one key of Redis or Valkey, changed only if it is unchanged since it was read."""

    def __init__(self, url: str, *, endpoint: str, model: str) -> None:
        # A broker's address may list several servers; all workers use the first.
        self._redis: Redis = Redis.from_url(
            url.split(";")[0], socket_timeout=REDIS_TIMEOUT, socket_connect_timeout=REDIS_TIMEOUT
        )
        self._key = redis_key(endpoint, model)
        self._local = LocalStore()
        self._rest_until = 0.0

    async def change(self, rule: Rule[T]) -> Step[T]:
        """Apply the rule; while Redis does not answer, apply it to the last known state."""
        if time.monotonic() >= self._rest_until:
            try:
                return await self._shared(rule)
            except (RedisError, OSError):
                self._rest_until = time.monotonic() + REDIS_REST
        return await self._local.change(rule)

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def _shared(self, rule: Rule[T]) -> Step[T]:
        async with self._redis.pipeline(transaction=True) as pipe:
            while True:
                try:
                    step = await self._step(pipe, rule)
                except WatchError:
                    continue  # another worker was first
                self._local.state = step.state
                return step

    async def _step(self, pipe: Any, rule: Rule[T]) -> Step[T]:
        await pipe.watch(self._key)
        stored = await pipe.get(self._key)
        seconds, microseconds = await pipe.time()
        before = State(**json.loads(stored)) if stored else State()
        step = rule(before, seconds + microseconds / 1e6)
        if step.state == before:
            await pipe.unwatch()
            return step
        pipe.multi()
        pipe.set(self._key, json.dumps(asdict(step.state)), ex=REDIS_EXPIRY)
        await pipe.execute()
        return step


def store_for(*, endpoint: str, model: str, broker_url: str) -> Store:
    """Return a store in the broker's Redis or Valkey if there is one, else in the database."""
    if broker_url.startswith(REDIS_SCHEMES):
        return RedisStore(broker_url, endpoint=endpoint, model=model)
    return DatabaseStore(endpoint=endpoint, model=model)


def redis_key(endpoint: str, model: str) -> str:
    """Return the key of a model's state in Redis."""
    return f"lace:throttle:{sha256(f'{endpoint} {model}'.encode()).hexdigest()}"


def row_state(row: EndpointState | None) -> State:
    """Return the state in a row; a new one without a row."""
    return State(**{name: getattr(row, name) for name in _NAMES}) if row else State()


def short_name(text: str) -> str:
    """Return the name, or its hash if it is longer than its column."""
    return text if len(text) <= 200 else sha256(text.encode()).hexdigest()


def _database_now() -> float:
    """Return the database server's time if it has a clock of its own; call it after locking the row."""
    if connection.vendor != "postgresql":
        return time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        (now,) = cursor.fetchone()
    return float(now)
