"""Stores what is learned of a model, and what the workspace sets."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from evaluation.endpoints.core.profile import fields_read
from evaluation.models.judges import EndpointModel


@transaction.atomic
def model_learn(*, endpoint: str, model: str, changes: Mapping[str, Any]) -> None:
    """Store what an endpoint's answers taught of a model; what the workspace set stays above it."""
    row = _row(endpoint, model)
    if row.learned | changes != row.learned:
        row.learned |= changes
        row.save(update_fields=["learned", "updated_at"])


@transaction.atomic
def model_set(*, endpoint: str, model: str, changes: Mapping[str, Any]) -> EndpointModel:
    """Set fields of a model's profile for the workspace; None takes a setting back.

    Raises FieldProblem for an unknown field or a value that is not allowed, with nothing written.
    """
    chosen = fields_read({name: value for name, value in changes.items() if value is not None})
    row = _row(endpoint, model)
    kept = {name: value for name, value in row.chosen.items() if name not in changes}
    row.chosen = kept | chosen
    row.save(update_fields=["chosen", "updated_at"])
    return row


@transaction.atomic
def model_forget(*, endpoint: str, model: str) -> None:
    """Delete what was learned of a model, so that it is learned again."""
    row = _row(endpoint, model)
    row.learned = {}
    row.save(update_fields=["learned", "updated_at"])


def _row(endpoint: str, model: str) -> EndpointModel:
    EndpointModel.objects.get_or_create(endpoint=endpoint, model=model)
    return EndpointModel.objects.select_for_update().get(endpoint=endpoint, model=model)
