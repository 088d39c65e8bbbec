"""Starts a model test, runs it, and keeps its result with the model."""

import logging
from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from kombu.exceptions import OperationalError

from common.problems import InputProblem, OutsideFailure
from common.queue import send_task
from evaluation.gateway.current import current_endpoint, endpoint_at
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.throttle import EndpointDown
from evaluation.model_tests.checks import result_json
from evaluation.model_tests.worker import model_ask
from evaluation.models.judges import EndpointModel
from labeling.models.people import User

log = logging.getLogger(__name__)

TEST_MODEL = "evaluation.tasks.test_model"
LONGEST_NAME = 200
CANCELLED = "it was cancelled"


class AlreadyTesting(InputProblem):
    """A test of this model is in work."""


class ModelTestCancelled(InputProblem):
    """Somebody cancelled the test, or began another one."""


@transaction.atomic
def model_test_begin(*, model: str, by: User | None, endpoint: str = "") -> EndpointModel:
    """Record that a test of this model begins, at an endpoint (its id); "" is the server's own.

    Raises EndpointGone, InputProblem for a name that cannot be one, AlreadyTesting if a test is in work, and
    what reading the settings raises.
    """
    name = model.strip()
    if not 0 < len(name) <= LONGEST_NAME or "\0" in name:
        raise InputProblem(f"the model's name needs 1 to {LONGEST_NAME} characters")
    endpoint = endpoint_at(endpoint).id if endpoint else current_endpoint().id
    EndpointModel.objects.get_or_create(endpoint=endpoint, model=name)
    row = EndpointModel.objects.select_for_update().get(endpoint=endpoint, model=name)
    if row.testing:
        raise AlreadyTesting(f"a test of {name} is in work")
    row.test_began_at, row.test_steps, row.test_error = timezone.now(), 0, ""
    row.tests, row.tested_by = row.tests + 1, by
    row.save()
    return row


def model_test_start(*, model: str, by: User, endpoint: str = "") -> EndpointModel:
    """Begin a test and enqueue it for a worker.

    Raises what `model_test_begin` raises, and InputProblem if the broker is down; no test is then in work.
    """
    row = model_test_begin(model=model, by=by, endpoint=endpoint)
    try:
        send_task(TEST_MODEL, [row.pk, row.tests])
    except OperationalError as error:
        EndpointModel.objects.filter(pk=row.pk, tests=row.tests).update(test_began_at=None)
        raise InputProblem(f"the task queue cannot be reached ({error})") from error
    return row


def model_test_cancel(*, row: EndpointModel) -> None:
    """Cancel the test in work: its worker asks nothing more. Calls in flight end and are paid for."""
    in_work = EndpointModel.objects.filter(pk=row.pk, test_began_at__isnull=False)
    in_work.update(test_began_at=None, test_error=CANCELLED)


def model_test_work(model_id: int, number: int) -> None:
    """Run test `number` of a model if it is still the one in work; its trouble is kept with the model."""
    row = EndpointModel.objects.filter(pk=model_id, tests=number, test_began_at__isnull=False).first()
    if row is None:
        return
    try:
        model_test_run(row)
    except (InputProblem, OutsideFailure) as problem:
        log.warning("the test of %s ended: %s", row.model, problem)


def model_test_run(row: EndpointModel, *, on_step: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Run a test that began and return its result; it is kept with the model. `on_step` follows each step.

    Raises OutsideFailure if the endpoint cannot answer, and what reading the settings raises; the model then
    keeps its earlier result and says why.
    """
    # A later test may have replaced this one, or a user may have cancelled it.
    rows = EndpointModel.objects.filter(pk=row.pk, tests=row.tests)

    def step() -> None:
        in_work = rows.filter(test_began_at__isnull=False)
        if not in_work.update(test_steps=F("test_steps") + 1, updated_at=timezone.now()):
            raise ModelTestCancelled(CANCELLED)
        on_step()

    try:
        seen = model_ask(endpoint=row.endpoint, model=row.model, number=row.tests, on_step=step)
    except (EndpointDown, EmbeddedModelError) as error:
        rows.update(test_error=str(error)[:300])
        raise OutsideFailure(str(error)) from error
    except InputProblem as error:
        rows.update(test_error=str(error)[:300])
        raise
    except BaseException:  # a stopped worker, too: the page must not wait for it
        rows.update(test_error="its worker was stopped")
        raise
    finally:
        rows.update(test_began_at=None)
    result = result_json(seen)
    rows.update(test=result, tested_at=timezone.now(), test_error="")
    return result
