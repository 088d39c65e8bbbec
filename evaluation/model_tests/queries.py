"""Models as the list and a model's page show them: profile, price, use and last test."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.problems import FieldProblem
from evaluation.endpoints.core.profile import FIELDS, ModelProfile
from evaluation.endpoints.queries import model_profiles
from evaluation.engines.core.roles import role_of
from evaluation.gateway.current import current_prices
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.prices import Price
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import model_of
from evaluation.judges.queries.model_notices import roles_asked
from evaluation.judges.queries.profiles import profile_choice
from evaluation.models.judges import EndpointModel, JudgeProfile


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model at an endpoint (its id). `row` is None for a model in use of which nothing is stored yet.

    `uses` are the judge profiles that ask it, with the roles. `price` is None if unknown.
    """

    endpoint: str
    model: str
    row: EndpointModel | None
    profile: ModelProfile
    price: Price | None
    uses: tuple[str, ...]

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


def model_rows(endpoint: Endpoint) -> list[ModelRow]:
    """Return the models of the endpoint in the settings, then those stored of others, by name.

    The number of queries grows with the endpoints only.
    """
    stored: dict[str, dict[str, EndpointModel]] = {endpoint.id: {}}
    for row in EndpointModel.objects.select_related("tested_by"):
        stored.setdefault(row.endpoint, {})[row.model] = row
    uses = _uses(endpoint)
    rows = []
    for address, by_model in stored.items():
        models = sorted({*by_model, *(uses if address == endpoint.id else ())})
        profiles = model_profiles(endpoint=address, models=models)
        prices = current_prices(endpoint=address, models=models)
        rows += [
            ModelRow(
                endpoint=address,
                model=model,
                row=by_model.get(model),
                profile=profiles[model],
                price=prices.get(model),
                uses=tuple(uses.get(model, ())) if address == endpoint.id else (),
            )
            for model in models
        ]
    return rows


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


def _uses(endpoint: Endpoint) -> dict[str, list[str]]:
    """Return by model the profiles that ask it and as what."""
    uses: dict[str, list[str]] = {}
    for profile in JudgeProfile.objects.all():
        try:
            choice = profile_choice(profile)
        except FieldProblem:
            continue
        for model, roles in _roles_by_model(choice, endpoint).items():
            uses.setdefault(model, []).append(f"{profile.name}: {', '.join(roles)}")
    return uses


def _roles_by_model(choice: JudgeSpec, endpoint: Endpoint) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for role in sorted(roles_asked(choice)):
        found.setdefault(model_of(role, choice=choice, endpoint=endpoint), []).append(role_of(role).name)
    return found
