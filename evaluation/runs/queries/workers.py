"""Which Celery workers were heard of lately, by queue."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from evaluation.models.outbox import WebhookEndpoint
from evaluation.models.runs import WorkerHeartbeat, WorkerLease

# A worker sends a heartbeat this often, whatever it works on; after three it counts as dead or frozen.
BEAT_SECONDS = 10.0
HEARD_WITHIN = timedelta(seconds=3 * BEAT_SECONDS)
JUDGE_QUEUE, WEBHOOK_QUEUE = "judge", "webhooks"


@dataclass(frozen=True, slots=True)
class QueueWorkers:
    """The workers of a queue: how many live, how many fell silent, and when the latest was heard of."""

    alive: int = 0
    silent: int = 0
    heard_at: datetime | None = None


def queue_workers(queue: str, *, among: list[WorkerHeartbeat] | None = None) -> QueueWorkers:
    """Return the workers of a queue; one query, or none with the heartbeats that it is `among`."""
    rows = list(WorkerHeartbeat.objects.all()) if among is None else among
    beats = [row.beat_at for row in rows if queue in row.queues]
    alive = sum(beat >= timezone.now() - HEARD_WITHIN for beat in beats)
    return QueueWorkers(alive, len(beats) - alive, max(beats, default=None))


def judge_workers() -> QueueWorkers:
    """Return the workers that judge, by heartbeats and leases: processes without Celery have leases only."""
    workers = queue_workers(JUDGE_QUEUE)
    if workers.alive:
        return workers
    sending = WebhookEndpoint.objects.exclude(lease=None).values("lease")
    leases = WorkerLease.objects.filter(beat_at__gte=timezone.now() - HEARD_WITHIN).exclude(pk__in=sending)
    return QueueWorkers(leases.count(), workers.silent, workers.heard_at)


def no_worker(heard_at: datetime | None) -> str:
    """Return the sentence on a queue without a living worker, the latest of which was heard of then."""
    if heard_at is None:
        return "No worker is running"
    return f"No worker has been heard of for {time_words(timezone.now() - heard_at)}"


def time_words(time: timedelta) -> str:
    """Return a time in its largest unit.

    >>> [time_words(timedelta(seconds=n)) for n in (1, 45, 130, 7300, 200_000)]
    ['1 second', '45 seconds', '2 minutes', '2 hours', '2 days']
    """
    seconds = max(0, int(time.total_seconds()))
    units = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= 2 * size), units[-1])
    number = seconds // size
    return f"{number} {unit}{'' if number == 1 else 's'}"
