"""Profiles of models: what the workspace set, what was learned, what is shipped."""

from collections.abc import Iterable, Mapping
from typing import Any

from evaluation.core.types import ModelAt
from evaluation.endpoints.core.known_models import known_profile
from evaluation.endpoints.core.profile import FIELDS, ModelProfile, Source, merged
from evaluation.models.judges import EndpointModel

# The embedded model gives short answers and takes everything that is asked of it.
EMBEDDED_PROFILE = ModelProfile(reasons=False, effort=False)


def model_profiles(*, endpoint: str, models: Iterable[str], learned: bool = True) -> dict[str, ModelProfile]:
    """Return each model's profile at this endpoint (its id); one query.

    Without what was `learned` it stays the same until somebody changes a setting, as a judge needs it.
    """
    rows = EndpointModel.objects.filter(endpoint=endpoint, model__in=set(models))
    by_model = {row.model: row for row in rows}
    return {model: _profile(endpoint, model, by_model.get(model), learned=learned) for model in models}


def profiles_at(models: Iterable[ModelAt], *, learned: bool = True) -> dict[ModelAt, ModelProfile]:
    """Return what each model takes at its endpoint; one query. `learned` as for `model_profiles`."""
    asked = set(models)
    rows = EndpointModel.objects.filter(
        endpoint__in={at.endpoint for at in asked}, model__in={at.model for at in asked}
    )
    found = {ModelAt(row.endpoint, row.model): row for row in rows}
    return {at: _profile(at.endpoint, at.model, found.get(at), learned=learned) for at in asked}


def model_profile(*, endpoint: str, model: str) -> ModelProfile:
    """Return a model's profile at this endpoint (its id); one query."""
    return model_profiles(endpoint=endpoint, models=[model])[model]


def tested_models(*, endpoint: str, models: Iterable[str]) -> set[str]:
    """Return those of the models that have a finished test at this endpoint (its id); one query."""
    rows = EndpointModel.objects.filter(endpoint=endpoint, model__in=set(models), tested_at__isnull=False)
    return set(rows.values_list("model", flat=True))


def _profile(endpoint: str, model: str, row: EndpointModel | None, *, learned: bool) -> ModelProfile:
    if endpoint.startswith("embedded:"):
        return EMBEDDED_PROFILE
    known = known_profile(endpoint=endpoint, model=model)
    if row is None:
        return known
    layers: list[tuple[Source, dict[str, Any]]] = [("workspace", _fields(row.chosen))]
    return merged(known, [("learned", _fields(row.learned)), *layers] if learned else layers)


def _fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what this release knows of the stored fields."""
    return {name: value for name, value in stored.items() if name in FIELDS}
