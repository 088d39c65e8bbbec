"""The endpoint and prices in the settings."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from django.conf import settings

from evaluation.gateway.embedded import ensure_running
from evaluation.gateway.endpoints import SIMULATED, Endpoint, resolve_endpoint
from evaluation.gateway.prices import Price, listed_prices, read_prices
from evaluation.gateway.simulated import INVENTED_PRICE, simulated_endpoint
from labeling.models.people import Workspace


def current_endpoint() -> Endpoint:
    """Return the endpoint in the settings; in a demo workspace the simulated judge, whatever they say."""
    if Workspace.is_demo():
        return simulated_endpoint()
    return settings_endpoint()


def endpoint_of_judge(stored: str) -> Endpoint:
    """Return the endpoint for a judge that began at `stored` (its id), which may be another one by now.

    In a demo workspace the embedded model answers beside the simulated judge.
    """
    if stored.startswith("embedded:") and Workspace.is_demo():
        return resolve_endpoint(base_url=None, api_key=None)
    return current_endpoint()


def settings_endpoint() -> Endpoint:
    """Return the endpoint in the settings, of any workspace."""
    return resolve_endpoint(base_url=settings.OPENAI_BASE_URL, api_key=settings.OPENAI_API_KEY)


def price_file() -> dict[str, Price]:
    """Return the prices in the settings' file; empty without one. Raises PriceFileError."""
    return read_prices(Path(settings.LACE_PRICES)) if settings.LACE_PRICES else {}


def current_prices(*, endpoint: str, models: Iterable[str]) -> dict[str, Price]:
    """Return the prices in the settings' file, and the shipped ones of other models of an endpoint (its id).

    A model in neither has an unknown price. Raises PriceFileError.
    """
    if endpoint == SIMULATED:
        return dict.fromkeys(models, INVENTED_PRICE)
    own = price_file()
    return own | listed_prices(endpoint=endpoint, models=set(models) - set(own))


def endpoint_locator(endpoint: Endpoint) -> Callable[[], str] | None:
    """Return how to find the embedded server, which may have another port after a restart."""
    return partial(ensure_running, settings.VAR_DIR) if endpoint.embedded else None
