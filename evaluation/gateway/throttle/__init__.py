"""What holds requests back: calls in flight, shared rates, the circuit breaker."""

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
    patience: float = PATIENCE,
    probe_every: float = PROBE_SECONDS,
) -> SharedThrottle:
    """Return the throttle of one model at one endpoint (its id), to be used as `async with`.

    The shared state is kept in the Redis or Valkey that `broker_url` names, else in the database, or in
    `store`. At most `max_in_flight` requests of this process are out at once. `patience` and `probe_every`
    are in seconds.
    """
    return SharedThrottle(
        key=(endpoint, model),
        most=max_in_flight,
        store=store or store_for(endpoint=endpoint, model=model, broker_url=broker_url),
        limits=limits,
        patience=patience,
        probe_every=probe_every,
    )
