"""A step of every Celery worker: it writes the worker's heartbeat, also while a task is at work."""

import logging
from collections.abc import Callable
from typing import Any

from celery import bootsteps
from celery.worker.state import active_requests
from django.db import Error, connection

from evaluation.runs.queries.workers import BEAT_SECONDS
from evaluation.runs.worker.heartbeats import heartbeat, heartbeat_begin, heartbeat_end
from lace_site.alive import touch_alive_file

log = logging.getLogger(__name__)


class Heartbeat(bootsteps.StartStopStep):  # type: ignore[misc]  # celery has no types
    """Runs in the worker's main process, which stays free while a pool process works."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self._timer: Any = None

    def start(self, worker: Any) -> None:
        """Write the first heartbeat and the later ones by the worker's timer."""
        who: dict[str, Any] = {"name": worker.hostname, "queues": list(worker.app.amqp.queues.consume_from)}
        _write(heartbeat_begin, **who)
        self._timer = worker.timer.call_repeatedly(BEAT_SECONDS, _beat, (), who)

    def stop(self, worker: Any) -> None:
        """Forget the worker."""
        if self._timer:
            self._timer.cancel()
        _write(heartbeat_end, name=worker.hostname)


def _beat(**who: Any) -> None:
    _write(heartbeat, **who, doing=work_in_hand())


def work_in_hand() -> list[dict[str, Any]]:
    """Return the tasks that this worker's processes or threads execute: name, id of the row, start."""
    found = []
    for request in list(active_requests):
        row = next((value for value in request.args or () if isinstance(value, int)), None)
        found.append({"task": request.name, "id": row, "since": request.time_start})
    return found


def _write(what: Callable[..., None], **who: Any) -> None:
    """Write on a connection of its own: pool processes forked later must not inherit it."""
    touch_alive_file()  # a worker without its database is alive
    try:
        what(**who)
    except Error as error:
        log.warning("the worker's heartbeat cannot be written: %s", " ".join(str(error).split()))
    finally:
        connection.close()
