"""Asks for the baselines of a report: from the store, at once where that is quick, else from a worker."""

from datetime import timedelta
from functools import partial

from django.db import transaction
from django.utils import timezone

from alignment.baselines.queries.baselines import (
    Baselines,
    answers_document,
    answers_pin,
    comparison,
    is_small,
    part_of,
    stored_answers,
    stored_comparison,
)
from alignment.baselines.worker import TRAININGS
from alignment.comparison.queries.answers import UnknownRater, knows_rater
from alignment.comparison.queries.scope import Scope
from alignment.models.baselines import BaselineTraining

NO_ONE_ANSWER = "Against each rater there is no one answer to learn: choose the consensus or one rater."
# What could not be trained is tried again when somebody asks so much later.
AFTER_FAILURE = timedelta(hours=1)


def baselines_get(scope: Scope, *, wait: bool = True) -> Baselines:
    """
    The judge of a run beside the baselines.

    Parameters
    ----------
    scope : of a run, as its user may be told.
    wait : whether to compute what is not stored, and ask a worker where that takes long; else neither.

    Raises
    ------
    UnknownRater : the rater gave no label here.
    """
    if scope.each_rater:
        return Baselines(reason=NO_ONE_ANSWER)
    if (stored := stored_comparison(scope)) is not None or not wait:
        return Baselines(stored)
    pin = answers_pin(scope)
    answers = stored_answers(pin)
    if answers is None and is_small(scope):
        answers = answers_document(scope)
    if answers is None:
        return Baselines(training=_asked(scope, pin))
    return Baselines(comparison(scope, answers))


def _asked(scope: Scope, pin: str) -> BaselineTraining:
    """The training of this pin; made where there is none and opened where its worker died, and rung for."""
    assert scope.run is not None  # noqa: S101  asked of runs only
    if not knows_rater(scope):
        raise UnknownRater(f"no labels by the rater {scope.rater!r} on these chats")
    asked = {"run": scope.run, "part": part_of(scope)}
    with transaction.atomic():
        old = BaselineTraining.objects.filter(state=BaselineTraining.State.FAILED)
        old.filter(pin=pin, asked_at__lt=timezone.now() - AFTER_FAILURE).delete()
        row, made = BaselineTraining.objects.get_or_create(pin=pin, defaults=asked)
        if made:
            transaction.on_commit(partial(TRAININGS.enqueue, row.pk))
    if TRAININGS.is_abandoned(row):  # the page does not wait for the next sweep
        TRAININGS.reopen_abandoned()
        TRAININGS.enqueue(row.pk)
        row.refresh_from_db()
    return row
