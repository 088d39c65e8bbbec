"""The Celery application; tasks contain ids only, the database has the state."""

import logging
import os
import signal
from contextlib import suppress
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP
from celery.exceptions import Reject
from celery.signals import worker_ready, worker_shutting_down
from celery.worker.state import active_requests
from kombu.connection import Connection
from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES

import lace_site.watch.tasks  # noqa: F401  its signals set up the log of all Celery processes

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")

TRANSPORT_ALIASES["filesystem"] = "lace_site.broker:Transport"
PROCESS_UNITS, SWEEP = "evaluation.tasks.process_units", "alignment.tasks.sweep"
RETRY_SECONDS = 2


class PatientConnection(Connection):
    """Retries a lost broker every two seconds; kombu's own pauses grow to half a minute."""

    def ensure_connection(self, *args: Any, **options: Any) -> Any:
        """Connect, or raise after `max_retries`."""
        patience = {"interval_step": 0, "interval_max": RETRY_SECONDS} | options
        return super().ensure_connection(*args, **patience)  # type: ignore[no-untyped-call]


class PatientAMQP(AMQP):  # type: ignore[misc]  # celery has no types
    """Celery's AMQP with these connections."""

    Connection = PatientConnection


app = Celery("lace", amqp=PatientAMQP)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# By name: it needs the models, which are not loaded yet.
app.steps["worker"].add("lace_site.heartbeat:Heartbeat")


def one_line_for_a_message_put_back(record: logging.LogRecord) -> bool:
    """Log without its traceback that a stopping worker put a message back: that is no error."""
    if record.exc_info and isinstance(record.exc_info[1], Reject):
        record.exc_info = None
    return True


logging.getLogger("celery.app.trace").addFilter(one_line_for_a_message_put_back)


@worker_ready.connect  # type: ignore[untyped-decorator]
def sweep_first(**_: Any) -> None:
    """Release the leases of a worker that died, when its successor starts."""
    with suppress(OperationalError):  # the clock enqueues the next one
        app.send_task(SWEEP, expires=60)


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def end_turns(**_: Any) -> None:
    """On shutdown, start no further unit; finish and store calls in flight."""
    for request in active_requests:
        if request.name == PROCESS_UNITS and request.worker_pid:
            with suppress(ProcessLookupError):
                os.kill(request.worker_pid, signal.SIGUSR2)
