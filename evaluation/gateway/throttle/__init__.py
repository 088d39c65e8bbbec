"""Limits the requests to an endpoint: calls in flight, shared rates, circuit breaker."""

import asyncio

from evaluation.gateway.throttle.protocol import EndpointDown, Throttle
from evaluation.gateway.throttle.rules import PROBE_SECONDS, Limits
from evaluation.gateway.throttle.shared import PATIENCE, SharedThrottle
from evaluation.gateway.throttle.slots import Slots
from evaluation.gateway.throttle.stores import Store, store_for

__all__ = ["PATIENCE", "EndpointDown", "Limits", "SharedThrottle", "Slots", "Throttle", "throttle_for"]


def throttle_for(
    *,
    endpoint: str,
    model: str,
    max_in_flight: int,
    limits: Limits,
    broker_url: str = "",
    store: Store | None = None,
    patience: float | None = None,
    probe_every: float | None = None,
    total: asyncio.Semaphore | None = None,
) -> SharedThrottle:
    """Return the throttle of one model at one endpoint (its id), to be used as `async with`.

    The shared state is in the Redis or Valkey of `broker_url`, else in the database, or in `store`. At most
    `max_in_flight` requests of this process are in flight; `total` limits several models together. `patience`
    (PATIENCE) and `probe_every` (PROBE_SECONDS) are in seconds.
    """
    return SharedThrottle(
        key=(endpoint, model),
        most=max_in_flight,
        store=store or store_for(endpoint=endpoint, model=model, broker_url=broker_url),
        limits=limits,
        patience=PATIENCE if patience is None else patience,
        probe_every=PROBE_SECONDS if probe_every is None else probe_every,
        total=total,
    )
