"""Which endpoint answers to a name or an id, and what its models cost: the one place that resolves both."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from django.conf import settings

from common.addresses import AddressPolicy, networks_read
from common.problems import InputProblem
from evaluation.core.types import ModelAt
from evaluation.gateway.client import EndpointClient
from evaluation.gateway.embedded import ensure_running
from evaluation.gateway.endpoints import SIMULATED, Endpoint, endpoint_name, resolve_endpoint
from evaluation.gateway.keys import decrypt
from evaluation.gateway.prices import Price, entered_prices, listed_prices, read_prices
from evaluation.gateway.simulated import INVENTED_PRICE, SimulatedClient, simulated_endpoint
from evaluation.models.endpoints import ConnectedEndpoint
from labeling.models.people import Workspace

# Ends the name of the server's own endpoint where endpoints are chosen.
OWN = " (server)"


class EndpointGone(InputProblem):
    """An endpoint that is neither the server's own nor connected, or that is disabled."""


def current_endpoint() -> Endpoint:
    """Return the default endpoint: the server's own; in a demo workspace the simulated judge."""
    return simulated_endpoint() if Workspace.is_demo() else settings_endpoint()


def settings_endpoint() -> Endpoint:
    """Return the server's own endpoint, which the settings name."""
    own = resolve_endpoint(base_url=settings.OPENAI_BASE_URL, api_key=settings.OPENAI_API_KEY)
    return replace(
        own,
        requests_per_minute=settings.LACE_REQUESTS_PER_MINUTE,
        tokens_per_minute=settings.LACE_TOKENS_PER_MINUTE,
    )


def endpoint_at(endpoint: str) -> Endpoint:
    """Return the endpoint of this id; at most one query.

    Raises EndpointGone if it is neither the server's own nor connected, or disabled.
    """
    elsewhere = ""
    with suppress(InputProblem):
        if (own := current_endpoint()).id == endpoint:
            return own
        elsewhere = f", but the server is set to {endpoint_name(own.id)}"
        # In a demo workspace the embedded model answers beside the simulated judge.
        if Workspace.is_demo() and (embedded := resolve_endpoint(base_url=None, api_key=None)).id == endpoint:
            return embedded
    row = ConnectedEndpoint.objects.filter(address=endpoint).first()
    if row is None:
        raise EndpointGone(
            f"{endpoint_name(endpoint)} is not connected{elsewhere}: connect it under Models, "
            "or choose another endpoint"
        )
    if not row.enabled:
        raise EndpointGone(f"the endpoint {row.name} is disabled: enable it under Models, or choose another")
    return connected(row)


def connected(row: ConnectedEndpoint) -> Endpoint:
    """Return a connected endpoint with its key. Raises KeyUnreadable."""
    return Endpoint(
        id=row.address,
        base_url=row.address,
        api_key=decrypt(row.key, name=row.name),
        embedded=False,
        query=f"api-version={row.api_version}" if row.api_version else "",
        name=row.name,
        guard=address_policy(),
        models=tuple(row.model_names),
        batch=row.batch,
        requests_per_minute=row.requests_per_minute,
        tokens_per_minute=row.tokens_per_minute,
        max_in_flight=row.max_in_flight,
    )


def endpoint_id(named: str) -> str:
    """Return the id of the endpoint that a user names, by its name or its id. Raises EndpointGone."""
    if named in ConnectedEndpoint.objects.filter(address=named).values_list("address", flat=True):
        return named
    row = ConnectedEndpoint.objects.filter(name=named).first()
    if row is not None:
        return row.address
    with suppress(InputProblem):
        if named == current_endpoint().id:
            return named
    names = list(ConnectedEndpoint.objects.values_list("name", flat=True))
    known = f"connected are {', '.join(names)}" if names else "none is connected"
    raise EndpointGone(f"there is no endpoint {named!r}: {known}")


def endpoint_names() -> dict[str, str]:
    """Return the name of each endpoint that can be chosen, by id: the server's own first; one query."""
    names: dict[str, str] = {}
    with suppress(InputProblem):
        own = current_endpoint()
        names[own.id] = f"{endpoint_name(own.id)}{OWN}"
    rows = ConnectedEndpoint.objects.filter(enabled=True).values_list("address", "name")
    return names | {address: name for address, name in rows if address not in names}


def endpoint_choices(
    used: Collection[str], *, more: Mapping[str, str] | None = None
) -> tuple[str, list[tuple[str, str]]]:
    """Return what no choice means, and the endpoints to choose from; a used one that is gone stays visible.

    more : names of further endpoints by id.
    """
    names = endpoint_names() | dict(more or {})
    own = next((name for name in names.values() if name.endswith(OWN)), "the server's own")
    gone = [(name, f"{name} (not connected)") for name in sorted({*used} - {*names, ""})]
    return own, [*names.items(), *gone]


def offered_models() -> list[str]:
    """Return the models that connected endpoints offer, each once, by name; one query."""
    rows = ConnectedEndpoint.objects.filter(enabled=True).values_list("model_names", flat=True)
    return sorted({model for names in rows for model in names})


def offered_at() -> list[tuple[str, list[ModelAt]]]:
    """Return the connected endpoints by name, each with the models that it offers; one query."""
    rows = ConnectedEndpoint.objects.filter(enabled=True)
    return [(row.name, [ModelAt(row.address, model) for model in row.model_names]) for row in rows]


def address_policy() -> AddressPolicy:
    """Return where the addresses of connected endpoints may lead, as the settings allow."""
    return AddressPolicy(
        loopback=settings.LACE_LOOPBACK_ONLY, networks=networks_read(settings.LACE_ENDPOINT_NETWORKS)
    )


def price_file() -> dict[str, Price]:
    """Return the prices in the settings' file; empty without one. Raises PriceFileError."""
    return read_prices(Path(settings.LACE_PRICES)) if settings.LACE_PRICES else {}


def prices_at(models: Iterable[ModelAt]) -> dict[ModelAt, Price]:
    """Return the known prices of models at their endpoints; a model without one has an unknown price.

    A connected endpoint has the prices that a lead entered; elsewhere the settings' file holds. The shipped
    list fills what is missing. At most one query. Raises PriceFileError.
    """
    asked = set(models)
    rows = ConnectedEndpoint.objects.filter(address__in={at.endpoint for at in asked})
    entered = {row.address: entered_prices(row.prices, source=row.name) for row in rows}
    with suppress(InputProblem):
        entered.pop(current_endpoint().id, None)
    found = {at: INVENTED_PRICE for at in asked if at.endpoint == SIMULATED}
    for endpoint in {at.endpoint for at in asked} - {SIMULATED}:
        own = entered[endpoint] if endpoint in entered else price_file()
        named = {at.model for at in asked if at.endpoint == endpoint}
        prices = own | listed_prices(endpoint=endpoint, models=named - set(own))
        found |= {ModelAt(endpoint, model): prices[model] for model in named if model in prices}
    return found


def current_prices(*, endpoint: str, models: Iterable[str]) -> dict[str, Price]:
    """Return the known prices of models of one endpoint (its id), by model. Raises PriceFileError."""
    found = prices_at(ModelAt(endpoint, model) for model in models)
    return {at.model: price for at, price in found.items()}


def endpoint_locator(endpoint: Endpoint) -> Callable[[], str] | None:
    """Return how to find the embedded server, which may have another port after a restart."""
    return partial(ensure_running, settings.VAR_DIR) if endpoint.embedded else None


def endpoint_client(endpoint: Endpoint) -> EndpointClient | SimulatedClient:
    """Return what sends requests to an endpoint, still to be opened."""
    if endpoint.simulated:
        return SimulatedClient()
    return EndpointClient(endpoint, locate=endpoint_locator(endpoint))
