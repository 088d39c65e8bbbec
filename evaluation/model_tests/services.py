"""Starts a model test, runs it, and keeps its result with the model."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from common.problems import InputProblem, OutsideFailure
from evaluation.gateway.current import current_endpoint
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.throttle import EndpointDown
from evaluation.model_tests.checks import result_json
from evaluation.model_tests.worker import model_ask
from evaluation.models.judges import EndpointModel
from labeling.models.people import User

# A test that shows no end for so long was lost with its worker.
LOST_AFTER = timedelta(minutes=30)
LONGEST_NAME = 200


class AlreadyTesting(InputProblem):
    """A test of this model is in work."""


@transaction.atomic
def model_test_begin(*, model: str, by: User | None) -> EndpointModel:
    """Record that a test of this model at the endpoint in the settings begins.

    Raises InputProblem for a name that cannot be one, AlreadyTesting if a test is in work, and what
    reading the settings raises.
    """
    name = model.strip()
    if not 0 < len(name) <= LONGEST_NAME or "\0" in name:
        raise InputProblem(f"the model's name needs 1 to {LONGEST_NAME} characters")
    endpoint = current_endpoint().id
    EndpointModel.objects.get_or_create(endpoint=endpoint, model=name)
    row = EndpointModel.objects.select_for_update().get(endpoint=endpoint, model=name)
    now = timezone.now()
    if row.test_began_at is not None and now - row.test_began_at < LOST_AFTER:
        raise AlreadyTesting(f"a test of {name} is in work")
    row.test_began_at, row.test_steps, row.test_error = now, 0, ""
    row.tests, row.tested_by = row.tests + 1, by
    row.save()
    return row


def model_test_run(row: EndpointModel, *, on_step: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Run a test that began and return its result; it is kept with the model. `on_step` follows each step.

    Raises OutsideFailure if the endpoint cannot answer, and what reading the settings raises; the model then
    keeps its earlier result and says why.
    """
    rows = EndpointModel.objects.filter(pk=row.pk)

    def step() -> None:
        rows.update(test_steps=F("test_steps") + 1)
        on_step()

    try:
        seen = model_ask(model=row.model, number=row.tests, on_step=step)
    except (EndpointDown, EmbeddedModelError) as error:
        rows.update(test_began_at=None, test_error=str(error)[:300])
        raise OutsideFailure(str(error)) from error
    except InputProblem as error:
        rows.update(test_began_at=None, test_error=str(error)[:300])
        raise
    result = result_json(seen)
    rows.update(test=result, tested_at=timezone.now(), test_began_at=None, test_error="")
    return result
