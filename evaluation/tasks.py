"""Celery tasks: an id in, the runner called; and the doorbell that queues them."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from celery import current_app, shared_task
from celery.exceptions import Reject, SoftTimeLimitExceeded
from django.conf import settings
from django.utils import timezone
from kombu.connection import Connection
from kombu.exceptions import OperationalError

from evaluation.models.runs import Run
from evaluation.runs.worker.batch import batches_to_stop
from evaluation.runs.worker.time_slices import (
    Next,
    reap,
    ring_answered,
    ring_stamp,
    run_turn,
    wants_helper,
    wind_down,
)

log = logging.getLogger(__name__)

# Units in flight have a request or two before them when a turn's time is over; then the worker is stuck.
SOFT_SECONDS = 60 + 2 * settings.LACE_REQUEST_TIMEOUT
HARD_SECONDS = SOFT_SECONDS + 30
# A broker that does not answer so quickly counts as down: whoever rings has a person waiting.
CONNECT_SECONDS = 0.5
# This process was asked to stop: it begins nothing any more.
LEAVING = threading.Event()


@shared_task(  # type: ignore[untyped-decorator]  # celery has no types
    name="evaluation.tasks.drain",
    acks_late=True,
    reject_on_worker_lost=True,
    soft_time_limit=SOFT_SECONDS,
    time_limit=HARD_SECONDS,
)
def drain(run_id: int, rung_at: str = "") -> None:
    """Carry a run on for one turn, then ring for its next one; what is done already is not asked again.

    `rung_at` names the ring; without it the run is worked on whoever rang.
    """
    if LEAVING.is_set():
        raise Reject("this worker stops", requeue=True)
    _heed_stop()
    if not ring_answered(run_id, datetime.fromisoformat(rung_at) if rung_at else None):
        return
    if wants_helper(run_id, more_than=2 * settings.LACE_MAX_IN_FLIGHT):
        ring(run_id)  # for a worker that has nothing to do, else for this one's next turn
    try:
        then = run_turn(run_id, leave=LEAVING)
    except SoftTimeLimitExceeded:
        log.warning("run %s: a turn took more than %s s and was cut short", run_id, SOFT_SECONDS)
        then = Next(again=True)
    if then.again:
        ring(run_id, wait=then.wait)


@shared_task(name="evaluation.tasks.sweep")  # type: ignore[untyped-decorator]  # celery has no types
def sweep() -> None:
    """The reaper: free what dead workers held, ring for every run that nobody works on, cancel batches."""
    found = reap()
    lost = found.quiet if found.quiet and rings_waiting() < len(found.quiet) else ()
    for run_id in (*found.unrung, *lost):
        if not ring(run_id, again=True):
            break  # the others would wait for the same broker
    for run_id in batches_to_stop(every=settings.LACE_BATCH_POLL_SECONDS):
        wind_down(run_id)


def ring(run_id: int, *, wait: float = 0.0, again: bool = False) -> bool:
    """Ring for a worker in `wait` seconds. False when the broker is down: the reaper will ring.

    A run has one ring that counts. Where one is on its way this one is left out, or with `wait` or `again`
    takes its place.
    """
    seen = Run.objects.filter(pk=run_id).values_list("rung_at", flat=True).first()
    at = timezone.now() + timedelta(seconds=wait)
    if (seen and not (wait or again)) or not ring_stamp(run_id, seen=seen, at=at):
        return True
    try:
        with broker_now() as broker:
            args = [run_id, at.isoformat()]
            drain.apply_async(args, connection=broker, countdown=wait or None, retry=False)
    except OperationalError as error:
        log.warning("no worker was rung for run %s: %s", run_id, error)
        Run.objects.filter(pk=run_id, rung_at=at).update(rung_at=None)
        return False
    return True


def rings_waiting() -> int:
    """How many turns are queued; 0 where the broker cannot say."""
    queue = settings.CELERY_TASK_ROUTES[drain.name]["queue"]
    try:
        with broker_now() as broker:
            found = broker.default_channel.queue_declare(  # type: ignore[no-untyped-call]
                queue=queue, passive=True
            )
            return int(found.message_count)
    except OperationalError:
        return 0


def _heed_stop() -> None:
    """A worker that is to stop sends SIGUSR2 to its process in work (see lace_site/celery.py)."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGUSR2, lambda *_: LEAVING.set())


@contextmanager
def broker_now() -> Iterator[Connection]:
    """A connection of its own (a pooled one may have died with the broker); raises OperationalError, soon."""
    options = {"connect_timeout": CONNECT_SECONDS, "transport_options": settings.CELERY_RING_OPTIONS}
    with current_app.connection_for_write(**options) as broker:
        try:
            broker.ensure_connection(max_retries=0)
            yield broker
        except (*broker.connection_errors, *broker.channel_errors) as error:
            raise OperationalError(" ".join(str(error).split())) from error
