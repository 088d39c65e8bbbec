"""Celery tasks: an id in, the worker called."""

import logging
import signal
import threading
from datetime import datetime

from celery import shared_task
from celery.exceptions import Reject, SoftTimeLimitExceeded
from django.conf import settings

from evaluation.model_tests.services import TEST_MODEL, model_test_work
from evaluation.outbox.services import SEND
from evaluation.runs.worker.enqueue import PROCESS_UNITS, run_enqueue
from evaluation.runs.worker.time_slices import NextSlice, enqueue_answered, run_time_slice, wants_helper
from evaluation.webhooks.worker import send_work

log = logging.getLogger(__name__)

# Units in flight have a request or two before them when a time slice ends; after that the worker is stuck.
SOFT_SECONDS = 60 + 2 * max(settings.LACE_REQUEST_TIMEOUT, settings.LACE_REASONING_TIMEOUT)
HARD_SECONDS = SOFT_SECONDS + 30
# A model test asks a slow model for as long as this.
TEST_SECONDS = 3600
# Set when this process was told to stop: it starts nothing more.
STOPPING = threading.Event()


@shared_task(  # type: ignore[untyped-decorator]  # celery has no types
    name=PROCESS_UNITS,
    acks_late=True,
    reject_on_worker_lost=True,
    soft_time_limit=SOFT_SECONDS,
    time_limit=HARD_SECONDS,
)
def process_units(run_id: int, enqueued_at: str = "") -> None:
    """Work on a run for one time slice, then enqueue the next; finished units are not asked again.

    `enqueued_at` names the message; without it the run is worked on in any case.
    """
    if STOPPING.is_set():
        raise Reject("this worker stops", requeue=True)
    _heed_stop()
    if not enqueue_answered(run_id, datetime.fromisoformat(enqueued_at) if enqueued_at else None):
        return
    if wants_helper(run_id, more_than=2 * settings.LACE_MAX_IN_FLIGHT):
        run_enqueue(run_id)  # for an idle worker, else for this one's next time slice
    try:
        then = run_time_slice(run_id, leave=STOPPING)
    except SoftTimeLimitExceeded:
        log.warning("run %s: a time slice took more than %s s and was cut short", run_id, SOFT_SECONDS)
        then = NextSlice(again=True)
    if then.again:
        run_enqueue(run_id, wait=then.wait)


@shared_task(  # type: ignore[untyped-decorator]  # celery has no types
    name=TEST_MODEL, soft_time_limit=TEST_SECONDS, time_limit=TEST_SECONDS + 30
)
def test_model(model_id: int, number: int) -> None:
    """Run a model test; a second message for it finds nothing to do."""
    model_test_work(model_id, number)


@shared_task(  # type: ignore[untyped-decorator]  # celery has no types
    name=SEND, acks_late=True, reject_on_worker_lost=True
)
def send_webhooks(webhook_id: int) -> None:
    """Send what is due at a webhook for one time slice; a second message for it finds nothing to do."""
    send_work(webhook_id)


def _heed_stop() -> None:
    """A worker that stops sends SIGUSR2 to its process at work (see lace_site/celery.py)."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGUSR2, lambda *_: STOPPING.set())
