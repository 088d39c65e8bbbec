"""Trains the bags of words that somebody waits for: under a lease, so that whoever takes over can tell."""

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from alignment.baselines.queries.baselines import answers_document, scope_of
from alignment.models.baselines import BaselineTraining
from common.queue import enqueue_row
from evaluation.models.runs import WorkerLease
from evaluation.runs.worker.leases import MOST_TRIES, LeaseLost, is_dead, lease_beat, lease_begin, lease_end

log = logging.getLogger(__name__)

# A ring that nobody has answered for so long may be lost.
RING_AGAIN = timedelta(seconds=30)
TRAIN = "alignment.tasks.train"
_State = BaselineTraining.State


def training_work(training_id: int) -> None:
    """Train one and store its answers; nothing where it is not waiting (any more).

    What is raised is logged by the worker; the training is tried again, three times in all.
    """
    lease = lease_begin(None)
    try:
        row = _take(training_id, lease)
        if row is not None:
            _train(row, lease)
    finally:
        BaselineTraining.objects.filter(pk=training_id, lease=lease).update(state=_State.OPEN, lease=None)
        lease_end(lease.pk)


def training_enqueue(training_id: int) -> bool:
    """Enqueue one; False when the broker is down: the next sweep does it."""
    return enqueue_row(TRAIN, BaselineTraining.objects.filter(pk=training_id))


def trainings_sweep() -> None:
    """Free what dead workers held, and enqueue what nobody works on."""
    for training_id in trainings_waiting():
        if not training_enqueue(training_id):
            break  # the others would wait for the same broker


def trainings_waiting() -> list[int]:
    """Take back those whose worker died, and return the open ones that nobody was rung for lately."""
    trainings_take_back()
    quiet = Q(rung_at=None) | Q(rung_at__lt=timezone.now() - RING_AGAIN)
    waiting = BaselineTraining.objects.filter(quiet, state=_State.OPEN).order_by("pk")
    return list(waiting.values_list("pk", flat=True))


def is_forsaken(row: BaselineTraining) -> bool:
    """Whether it is said to be worked on, by a worker that died."""
    # The reaper may have removed the lease already.
    return row.state == _State.WORKING and (row.lease is None or is_dead(row.lease))


@transaction.atomic
def trainings_take_back() -> None:
    """Open again what dead workers held: their ring was heard, it takes another one."""
    working = BaselineTraining.objects.filter(state=_State.WORKING).select_for_update(of=("self",))
    for row in working.select_related("lease"):
        if is_forsaken(row):
            row.state, row.lease, row.rung_at = _State.OPEN, None, None
            row.save(update_fields=["state", "lease", "rung_at"])
            log.warning("the baselines of run %s are trained again: their worker died", row.run_id)


@transaction.atomic
def _take(training_id: int, lease: WorkerLease) -> BaselineTraining | None:
    rows = BaselineTraining.objects.select_for_update(of=("self",)).filter(pk=training_id, state=_State.OPEN)
    row = rows.select_related("run__chat_set").first()
    if row is None:
        return None
    row.tries += 1
    if row.tries > MOST_TRIES:
        row.state = _State.FAILED
        log.error("the baselines of run %s could not be trained %s times", row.run_id, MOST_TRIES)
    else:
        row.state, row.lease, row.done = _State.WORKING, lease, 0
    row.save(update_fields=["state", "lease", "tries", "done"])
    return row if row.lease else None


def _train(row: BaselineTraining, lease: WorkerLease) -> None:
    def beat(done: int, total: int) -> None:
        lease_beat(lease.pk)
        BaselineTraining.objects.filter(pk=row.pk, lease=lease).update(done=done, total=total)

    try:
        answers_document(scope_of(row.run, row.part), beat=beat)
    except LeaseLost:
        log.warning("the baselines of run %s were taken over", row.run_id)
    else:
        BaselineTraining.objects.filter(pk=row.pk).delete()
