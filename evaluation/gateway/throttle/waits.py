"""How long an endpoint holds up the calls of all workers, read without changing anything."""

import json
import math
import time
from collections.abc import Collection
from dataclasses import dataclass

from redis import Redis
from redis.exceptions import RedisError

from evaluation.core.types import ModelAt
from evaluation.gateway.throttle.rules import State
from evaluation.gateway.throttle.stores import REDIS_SCHEMES, redis_key, row_state, short_name
from evaluation.models.runs import EndpointState

# A page waits this long for Redis.
SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class EndpointWait:
    """Whole seconds until the next call may leave; `failing` if the endpoint failed instead of asking."""

    seconds: int
    failing: bool


def endpoint_wait(*, models: Collection[ModelAt], broker_url: str) -> EndpointWait | None:
    """Return the longest wait of these models at their endpoints, None without one; one query."""
    now, longest = time.time(), None
    for state in endpoint_states(models=models, broker_url=broker_url).values():
        failing = state.opened_at is not None
        left = math.ceil((state.probe_at if failing else state.not_before) - now)
        if left > 0 and (longest is None or left > longest.seconds):
            longest = EndpointWait(left, failing)
    return longest


def endpoint_states(*, models: Collection[ModelAt], broker_url: str) -> dict[ModelAt, State]:
    """Return the shared state of these models as far as there is one; one query or one request to Redis."""
    if not models:
        return {}
    if not broker_url.startswith(REDIS_SCHEMES):
        names = {(short_name(at.endpoint), short_name(at.model)): at for at in models}
        rows = EndpointState.objects.filter(
            endpoint__in={endpoint for endpoint, _ in names}, model__in={model for _, model in names}
        )
        found = {names.get((row.endpoint, row.model)): row_state(row) for row in rows}
        return {at: state for at, state in found.items() if at is not None}
    try:
        with Redis.from_url(
            broker_url.split(";")[0], socket_timeout=SECONDS, socket_connect_timeout=SECONDS
        ) as redis:
            asked = list(models)
            stored = redis.mget([redis_key(at.endpoint, at.model) for at in asked])
    except (RedisError, OSError):
        return {}
    return {at: State(**json.loads(text)) for at, text in zip(asked, stored, strict=True) if text}
