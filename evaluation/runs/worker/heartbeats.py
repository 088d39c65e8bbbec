"""Heartbeats of the Celery workers, from which pages and health checks know that they live."""

from collections.abc import Collection, Sequence
from typing import Any

from django.utils import timezone

from evaluation.models.runs import WorkerHeartbeat
from evaluation.runs.queries.workers import HEARD_WITHIN


def heartbeat_begin(*, name: str, queues: Collection[str]) -> None:
    """Write a worker's first heartbeat; it takes the place of those of its queues that fell silent."""
    heartbeat(name=name, queues=queues)
    WorkerHeartbeat.objects.filter(name=name).update(started_at=timezone.now())
    silent = WorkerHeartbeat.objects.filter(beat_at__lt=timezone.now() - HEARD_WITHIN)
    silent.filter(queues=sorted(queues)).delete()


def heartbeat(*, name: str, queues: Collection[str], doing: Sequence[dict[str, Any]] = ()) -> None:
    """Write that this worker lives, and what it works on: one statement. Raises DatabaseError."""
    WorkerHeartbeat.objects.bulk_create(
        [WorkerHeartbeat(name=name, queues=sorted(queues), doing=list(doing), beat_at=timezone.now())],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["queues", "doing", "beat_at"],
    )


def heartbeat_end(*, name: str) -> None:
    """Forget a worker that stops in order. Raises DatabaseError."""
    WorkerHeartbeat.objects.filter(name=name).delete()
