"""Celery tasks of regression tests, suggested prompts, misalignments and baselines."""

import logging
from datetime import datetime
from typing import Any

from celery import shared_task
from django.db.models import QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from alignment.baselines.worker import training_work, trainings_waiting
from alignment.misalignments.queries.runs import runs_waiting
from alignment.misalignments.worker import misalignments_refresh
from alignment.models.baselines import BaselineTraining
from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.worker import suggestion_work, suggestions_waiting
from alignment.regression.worker import regression_advance, regressions_waiting
from evaluation.tasks import HARD_SECONDS, SOFT_SECONDS, broker_now

log = logging.getLogger(__name__)


@shared_task(name="alignment.tasks.gate")  # type: ignore[untyped-decorator]  # celery has no types
def gate() -> None:
    """Take every regression test whose runs are over a step further."""
    for test_id in regressions_waiting():
        try:
            regression_advance(test_id)
        except Exception:
            # One test that cannot be decided must not hold up the others.
            log.exception("regression test %s could not be decided", test_id)


@shared_task(name="alignment.tasks.misalignments")  # type: ignore[untyped-decorator]  # celery has no types
def misalignments() -> None:
    """Look finished runs through, and those on whose chats labels have changed."""
    for run in runs_waiting():
        try:
            misalignments_refresh(run)
        except Exception:
            # One run that cannot be looked through must not hold up the others.
            log.exception("run %s could not be looked through for misalignments", run.pk)


@shared_task(  # type: ignore[untyped-decorator]  # celery has no types
    name="alignment.tasks.suggest",
    acks_late=True,
    reject_on_worker_lost=True,
    soft_time_limit=SOFT_SECONDS,
    time_limit=HARD_SECONDS,
)
def suggest(suggestion_id: int) -> None:
    """Ask for one suggestion; a second ring for it finds nothing to do."""
    suggestion_work(suggestion_id)


@shared_task(name="alignment.tasks.suggestions")  # type: ignore[untyped-decorator]  # celery has no types
def suggestions() -> None:
    """Take back what dead workers held, and ring for what nobody works on."""
    for suggestion_id in suggestions_waiting():
        if not suggestion_ring(suggestion_id):
            break  # the others would wait for the same broker


@shared_task(  # type: ignore[untyped-decorator]  # celery has no types
    name="alignment.tasks.train",
    acks_late=True,
    reject_on_worker_lost=True,
    soft_time_limit=SOFT_SECONDS,
    time_limit=HARD_SECONDS,
)
def train(training_id: int) -> None:
    """Train one bag of words; a second ring for it finds nothing to do."""
    training_work(training_id)


@shared_task(name="alignment.tasks.baselines")  # type: ignore[untyped-decorator]  # celery has no types
def baselines() -> None:
    """Take back what dead workers held, and ring for what nobody works on."""
    for training_id in trainings_waiting():
        if not training_ring(training_id):
            break  # the others would wait for the same broker


def suggestion_ring(suggestion_id: int) -> bool:
    """Ring for a worker. False when the broker is down: the reaper will ring."""
    return _rung(suggest, Suggestion, suggestion_id)


def training_ring(training_id: int) -> bool:
    """The same for a bag of words."""
    return _rung(train, BaselineTraining, training_id)


def _rung(task: Any, waiting: type[Suggestion] | type[BaselineTraining], pk: int) -> bool:
    at: datetime = timezone.now()
    rows: QuerySet[Any] = waiting._default_manager.filter(pk=pk)
    rows.update(rung_at=at)
    try:
        with broker_now() as broker:
            task.apply_async([pk], connection=broker, retry=False)
    except OperationalError as error:
        log.warning("no worker was rung for %s %s: %s", waiting._meta.verbose_name, pk, error)
        rows.filter(rung_at=at).update(rung_at=None)
        return False
    return True
