"""The task queue: enqueue by name, over a connection of its own that gives up soon."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from celery import current_app
from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from kombu.connection import Connection
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)

# A broker that does not answer within this time counts as down: a person may be waiting for the page.
CONNECT_SECONDS = 0.5


@contextmanager
def queue_connection() -> Iterator[Connection]:
    """A connection of its own (a pooled one may have died with the broker). Raises OperationalError soon."""
    options = {"connect_timeout": CONNECT_SECONDS, "transport_options": settings.CELERY_ENQUEUE_OPTIONS}
    with current_app.connection_for_write(**options) as broker:
        try:
            broker.ensure_connection(max_retries=0)
            yield broker
        except (*broker.connection_errors, *broker.channel_errors) as error:
            raise OperationalError(" ".join(str(error).split())) from error


def send_task(name: str, args: Sequence[Any], *, wait: float = 0.0) -> None:
    """Enqueue a task by its name, to start in `wait` seconds at the earliest. Raises OperationalError."""
    with queue_connection() as broker:
        current_app.send_task(name, args, connection=broker, countdown=wait or None, retry=False)


def enqueue_row(name: str, rows: QuerySet[Any], pk: int) -> bool:
    """Enqueue a task for the row `pk` of `rows` and note the time in its `rung_at`.

    Returns False when the broker is down: the next sweep enqueues it. The row may be gone by now: the task
    then finds nothing to do.
    """
    at, rows = timezone.now(), rows.filter(pk=pk)
    rows.update(rung_at=at)
    try:
        send_task(name, [pk])
    except OperationalError as error:
        log.warning("%s %s was not enqueued: %s", name, pk, error)
        rows.filter(rung_at=at).update(rung_at=None)
        return False
    return True


def messages_waiting(task: str) -> int:
    """How many messages wait in the queue of this task; 0 where the broker cannot say."""
    queue = settings.CELERY_TASK_ROUTES[task]["queue"]
    try:
        with queue_connection() as broker:
            state = broker.default_channel.queue_declare(  # type: ignore[no-untyped-call]
                queue=queue, passive=True
            )
            return int(state.message_count)
    except OperationalError:
        return 0
