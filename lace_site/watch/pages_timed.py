"""How long pages take and how they end, by route name, over all web processes of this machine."""

import os

from prometheus_client import Counter, Histogram, disable_created_metrics, values
from prometheus_client.registry import CollectorRegistry

from lace_site.watch.slots import slot

if "PROMETHEUS_MULTIPROC_DIR" in os.environ:  # gunicorn.conf.py sets it
    values.ValueClass = values.MultiProcessValue(process_identifier=slot)  # type: ignore[no-untyped-call]

# They say nothing about this site, and double the lines.
disable_created_metrics()  # type: ignore[no-untyped-call]
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REGISTRY = CollectorRegistry()
SECONDS = Histogram(
    "lace_http_request_seconds",
    "Seconds until a request was answered, by route.",
    ["route", "method"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    registry=REGISTRY,
)
RESPONSES = Counter(
    "lace_http_responses", "Answers by route and status.", ["route", "method", "status"], registry=REGISTRY
)


def known_method(method: str | None) -> str:
    """Return the method, or one name for all that nobody knows."""
    return method if method in METHODS and method else "other"


def page_timed(*, route: str, method: str | None, status: int, seconds: float) -> None:
    """Count an answer. Addresses without a route have one name together."""
    route, method = route or "none", known_method(method)
    SECONDS.labels(route, method).observe(seconds)
    RESPONSES.labels(route, method, str(status)).inc()
