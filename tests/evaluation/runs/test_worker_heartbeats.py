"""Heartbeats: one row a worker, by which pages know that it lives, fell silent or stopped."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluation.models.runs import WorkerHeartbeat
from evaluation.runs.queries.workers import QueueWorkers, queue_workers
from evaluation.runs.worker.heartbeats import heartbeat, heartbeat_begin, heartbeat_end

pytestmark = pytest.mark.django_db


def fall_silent(name: str, seconds: int) -> None:
    WorkerHeartbeat.objects.filter(name=name).update(beat_at=timezone.now() - timedelta(seconds=seconds))


def test_a_worker_has_one_row_however_often_it_beats() -> None:
    for _ in range(3):
        heartbeat(name="judge1@here", queues=["judge"])
    with CaptureQueriesContext(connection) as captured:
        heartbeat(name="judge1@here", queues=["judge"])
    assert (WorkerHeartbeat.objects.count(), len(captured)) == (1, 1)


def test_workers_are_counted_by_queue_and_a_silent_one_is_not_alive() -> None:
    heartbeat(name="judge1@here", queues=["judge"])
    heartbeat(name="judge2@here", queues=["judge", "default"])
    fall_silent("judge2@here", 31)
    judge, default = queue_workers("judge"), queue_workers("default")
    assert (judge.alive, judge.silent, default.alive, default.silent) == (1, 1, 0, 1)
    assert queue_workers("other") == QueueWorkers()
    heartbeat(name="judge2@here", queues=["judge", "default"])
    assert queue_workers("default").alive == 1


def test_a_worker_that_starts_takes_the_place_of_a_silent_one_of_its_queues() -> None:
    for name in ("judge1@old", "judge1@busy"):
        heartbeat_begin(name=name, queues=["judge"])
    heartbeat_begin(name="default@old", queues=["default"])
    fall_silent("judge1@old", 31)
    fall_silent("default@old", 31)
    heartbeat_begin(name="judge1@new", queues=["judge"])
    names = set(WorkerHeartbeat.objects.values_list("name", flat=True))
    assert names == {"judge1@busy", "judge1@new", "default@old"}


def test_a_worker_that_stops_in_order_is_forgotten() -> None:
    heartbeat_begin(name="judge1@here", queues=["judge"])
    heartbeat_end(name="judge1@here")
    assert queue_workers("judge") == QueueWorkers()
