"""The endpoint and prices in the settings."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from django.conf import settings

from evaluation.gateway.embedded import ensure_running
from evaluation.gateway.endpoints import Endpoint, resolve_endpoint
from evaluation.gateway.prices import Price, read_prices


def current_endpoint() -> Endpoint:
    """Return the endpoint in the settings."""
    return resolve_endpoint(base_url=settings.OPENAI_BASE_URL, api_key=settings.OPENAI_API_KEY)


def current_prices() -> dict[str, Price]:
    """Return the prices in the settings' file; empty without one, so that costs are unknown."""
    return read_prices(Path(settings.LACE_PRICES)) if settings.LACE_PRICES else {}


def endpoint_locator(endpoint: Endpoint) -> Callable[[], str] | None:
    """Return how to find the embedded server, which may have another port after a restart."""
    return partial(ensure_running, settings.VAR_DIR) if endpoint.embedded else None
