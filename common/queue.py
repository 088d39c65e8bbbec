"""The task queue: enqueue by name, over a connection of its own that gives up soon."""

import json
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery import current_app
from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from kombu.connection import Connection
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

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


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many messages wait in a queue, and for how many seconds the oldest; 0 where none waits."""

    messages: int
    oldest_seconds: float


def queue_folder() -> Path | None:
    """Return the folder of messages; None for another broker."""
    return settings.BROKER_DIR / "queue" if settings.CELERY_BROKER_URL.startswith("filesystem://") else None


def queue_states(queues: Sequence[str]) -> dict[str, QueueState]:
    """Return the state of these queues; {} where the broker does not answer or cannot say."""
    if folder := queue_folder():
        return {queue: _folder_state(folder, queue) for queue in queues}
    if not settings.CELERY_BROKER_URL.startswith(("redis://", "rediss://")):
        return {}
    try:
        with queue_connection() as broker:
            client = broker.default_channel.client  # type: ignore[attr-defined]  # of Redis alone
            return {queue: _redis_state(client, queue) for queue in queues}
    except (OperationalError, RedisError):
        return {}


def _folder_state(folder: Path, queue: str) -> QueueState:
    sent = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.endswith(f".{queue}.msg"):
                with suppress(FileNotFoundError):  # a worker took it
                    sent.append(entry.stat().st_mtime)
    return QueueState(len(sent), time.time() - min(sent) if sent else 0.0)


def _redis_state(client: Any, queue: str) -> QueueState:
    """Read the message that a worker takes next; the time in it is the sender's."""
    oldest = client.lindex(queue, -1)
    try:
        sent = float(json.loads(oldest)["headers"]["sent_at"]) if oldest else time.time()
    except (ValueError, LookupError, TypeError):
        sent = time.time()
    return QueueState(int(client.llen(queue)), max(0.0, time.time() - sent))
