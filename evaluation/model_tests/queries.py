"""Models as the list and a model's page show them: profile, price, use and last test."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.problems import FieldProblem
from evaluation.core.types import ModelAt
from evaluation.endpoints.core.profile import FIELDS, ModelProfile
from evaluation.endpoints.queries import profiles_at
from evaluation.engines.core.roles import role_of
from evaluation.gateway.current import current_prices, endpoint_names, prices_at
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.prices import Price
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import endpoint_of, model_of
from evaluation.judges.queries.model_notices import roles_asked
from evaluation.judges.queries.profiles import profile_choice
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import EndpointModel, JudgeProfile


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model at an endpoint (its id). `row` is None for a model in use of which nothing is stored yet.

    `place` is the endpoint's name; `here`: it can be asked now. `uses` are the judge profiles that ask it,
    with the roles. `price` is None if unknown.
    """

    endpoint: str
    model: str
    row: EndpointModel | None
    profile: ModelProfile
    price: Price | None
    uses: tuple[str, ...]
    place: str
    here: bool

    @property
    def look(self) -> str:
        """Return how the status of its last test looks: failed, needs a setting, or passed."""
        return "not" if self.result.get("n_fail") else "few" if self.result.get("n_set") else "on"

    @property
    def result(self) -> Mapping[str, Any]:
        """Return the last finished test's result; empty without one."""
        return (self.row.test if self.row else None) or {}


@dataclass(frozen=True, slots=True)
class ProfileField:
    """One field of a profile in words; `text` is empty if the value is unknown, `source` for a default."""

    name: str
    text: str
    source: str


def model_rows(endpoint: Endpoint | None) -> list[ModelRow]:
    """Return the models of the server's own endpoint, then those of others: offered, in use or stored.

    `endpoint` is the server's own, None if it cannot be used.
    The number of queries does not grow with models or endpoints.
    """
    stored = {
        ModelAt(row.endpoint, row.model): row for row in EndpointModel.objects.select_related("tested_by")
    }
    names, uses = endpoint_names(), _uses(endpoint)
    offered = {
        ModelAt(row.address, model)
        for row in ConnectedEndpoint.objects.filter(enabled=True)
        for model in row.model_names
    }
    order = {name: place for place, name in enumerate(names)}
    models = sorted(
        {*stored, *uses, *offered}, key=lambda at: (order.get(at.endpoint, len(order)), at.endpoint, at.model)
    )
    profiles, prices = profiles_at(models), prices_at(models)
    return [
        ModelRow(
            endpoint=at.endpoint,
            model=at.model,
            row=stored.get(at),
            profile=profiles[at],
            price=prices.get(at),
            uses=tuple(uses.get(at, ())),
            place=names.get(at.endpoint, at.endpoint),
            here=at.endpoint in names,
        )
        for at in models
    ]


def profile_fields(profile: ModelProfile) -> list[ProfileField]:
    """Return every field of a profile with its source."""
    sources = {name: profile.source(name) for name in FIELDS}
    return [
        ProfileField(name, _text(getattr(profile, name)), "" if source == "default" else source)
        for name, source in sources.items()
    ]


def model_price(row: EndpointModel) -> Price | None:
    """Return the price of a model; None if unknown."""
    return current_prices(endpoint=row.endpoint, models=[row.model]).get(row.model)


def _text(value: Any) -> str:
    """Return a field's value in words; "" for an unknown one."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False) if value else ""
    return value if isinstance(value, str) else ", ".join(value or ())


def _uses(endpoint: Endpoint | None) -> dict[ModelAt, list[str]]:
    """Return by model the profiles that ask it and as what; `endpoint` is the server's own."""
    uses: dict[ModelAt, list[str]] = {}
    connected = {row.address: row for row in ConnectedEndpoint.objects.filter(enabled=True)}
    for profile in JudgeProfile.objects.all():
        try:
            choice = profile_choice(profile)
        except FieldProblem:
            continue
        asked = endpoint
        if choice.endpoint and (endpoint is None or choice.endpoint != endpoint.id):
            if (row := connected.get(choice.endpoint)) is None:
                continue
            offered = tuple(row.model_names)
            asked = Endpoint(row.address, row.address, "", embedded=False, name=row.name, models=offered)
        if asked is None:
            continue
        for at, roles in _roles_by_model(choice, asked).items():
            uses.setdefault(at, []).append(f"{profile.name}: {', '.join(roles)}")
    return uses


def _roles_by_model(choice: JudgeSpec, endpoint: Endpoint) -> dict[ModelAt, list[str]]:
    found: dict[ModelAt, list[str]] = {}
    for role in sorted(roles_asked(choice)):
        place = endpoint_of(role, choice=choice, endpoint=endpoint)
        at = ModelAt(place, model_of(role, choice=choice, endpoint=endpoint))
        found.setdefault(at, []).append(role_of(role).name)
    return found
