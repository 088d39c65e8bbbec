"""Baselines of a report: computed at once if that is quick, or on request by a worker."""

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
    known_comparison,
)
from alignment.baselines.worker import TRAININGS
from alignment.comparison.queries.answers import UnknownRater, knows_rater
from alignment.comparison.queries.cached_documents import documents_stored, known_body
from alignment.comparison.queries.scope import Scope, part_of
from alignment.models.baselines import BaselineTraining

NO_ONE_ANSWER = "Baselines need one answer per chat. Choose the consensus or one rater as ground truth."
# A failed training is repeated on request after this time.
AFTER_FAILURE = timedelta(hours=1)


def baselines_get(scope: Scope, *, wait: bool = True) -> Baselines:
    """Compare the judge of a run with the baselines, without storing anything.

    The result is empty where a worker has to compute it and nobody has asked for it.

    Parameters
    ----------
    scope : of a run, limited to what the user may see.
    wait : whether to compute what is small and not known.

    Raises
    ------
    UnknownRater : the scope's rater has no labels on these chats.
    """
    if scope.each_rater:
        return Baselines(reason=NO_ONE_ANSWER)
    if (known := known_comparison(scope)) is not None or not wait:
        return Baselines(known)
    pin = answers_pin(scope)
    answers = known_body(pin)
    if answers is None and is_small(scope):
        answers = answers_document(scope)
    if answers is not None:
        return Baselines(comparison(scope, answers))
    return Baselines(training=BaselineTraining.objects.filter(pin=pin).first())


def baselines_ask(scope: Scope) -> Baselines:
    """Compute the baselines and store them, or enqueue their training; arguments as for `baselines_get`."""
    with documents_stored():
        baselines = baselines_get(scope)
    if baselines.reason or baselines.body is not None:
        return baselines
    return Baselines(training=_training(scope, answers_pin(scope)))


def _training(scope: Scope, pin: str) -> BaselineTraining:
    """The training of this pin; created and enqueued if there is none, or if its worker died."""
    assert scope.run is not None  # noqa: S101  baselines need a run
    if not knows_rater(scope):
        raise UnknownRater(f"rater {scope.rater!r} has no labels on these chats")
    fields = {"run": scope.run, "part": part_of(scope)}
    with transaction.atomic():
        old = BaselineTraining.objects.filter(state=BaselineTraining.State.FAILED)
        old.filter(pin=pin, asked_at__lt=timezone.now() - AFTER_FAILURE).delete()
        row, created = BaselineTraining.objects.get_or_create(pin=pin, defaults=fields)
        if created:
            transaction.on_commit(partial(TRAININGS.enqueue, row.pk))
    if TRAININGS.is_abandoned(row):  # the page does not wait for the next sweep
        TRAININGS.reopen_abandoned()
        TRAININGS.enqueue(row.pk)
        row.refresh_from_db()
    return row


def baselines_cancel(scope: Scope) -> None:
    """Cancel the training that waits or runs; its worker stops before the next criterion."""
    BaselineTraining.objects.filter(pin=answers_pin(scope)).exclude(
        state=BaselineTraining.State.FAILED
    ).delete()
