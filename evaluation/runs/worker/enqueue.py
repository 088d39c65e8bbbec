"""Enqueue runs, and the sweep that enqueues again what was lost."""

import logging
from datetime import timedelta

from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError

from common.queue import messages_waiting, send_task
from evaluation.models.runs import Run
from evaluation.runs.worker.batch import batches_to_stop
from evaluation.runs.worker.time_slices import enqueue_stamp, reap, wind_down

log = logging.getLogger(__name__)

PROCESS_UNITS = "evaluation.tasks.process_units"


def run_enqueue(run_id: int, *, wait: float = 0.0, again: bool = False) -> bool:
    """Enqueue a run's next time slice in `wait` seconds. False when the broker is down: a sweep will do it.

    Only one message a run counts. Where one is in the queue this one is dropped, or replaces it with `wait`
    or `again`.
    """
    queued_at = Run.objects.filter(pk=run_id).values_list("rung_at", flat=True).first()
    at = timezone.now() + timedelta(seconds=wait)
    if (queued_at and not (wait or again)) or not enqueue_stamp(run_id, seen=queued_at, at=at):
        return True
    try:
        send_task(PROCESS_UNITS, [run_id, at.isoformat()], wait=wait)
    except OperationalError as error:
        log.warning("run %s was not enqueued: %s", run_id, error)
        Run.objects.filter(pk=run_id, rung_at=at).update(rung_at=None)
        return False
    return True


def runs_waiting_in_queue() -> int:
    """How many time slices are in the queue; 0 where the broker cannot say."""
    return messages_waiting(PROCESS_UNITS)


def sweep_runs() -> None:
    """Free what dead workers held, enqueue every run that nobody works on, and cancel batches."""
    reaped = reap()
    lost = reaped.quiet if reaped.quiet and runs_waiting_in_queue() < len(reaped.quiet) else ()
    for run_id in (*reaped.unrung, *lost):
        if not run_enqueue(run_id, again=True):
            break  # the others would wait for the same broker
    for run_id in batches_to_stop(every=settings.LACE_BATCH_POLL_SECONDS):
        wind_down(run_id)
