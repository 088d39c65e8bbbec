"""Figures of the whole site from the database and the broker: a fixed number of queries, kept for a while."""

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from django.conf import settings
from django.db import Error, connection
from django.db.models import Count, F, Sum
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from common.disk import database_bytes, database_folder
from common.queue import queue_states
from evaluation.call_counts.queries import CallSum, call_totals, leases_lost
from evaluation.core.types import ModelAt
from evaluation.gateway.endpoints import endpoint_name
from evaluation.gateway.throttle.waits import endpoint_states
from evaluation.models.runs import Attempt, Run, WorkerHeartbeat
from evaluation.runs.queries.stuck import stuck_runs
from evaluation.runs.queries.workers import queue_workers

QUEUES = ("judge", "default", "webhooks")
KEPT_SECONDS = 10.0


class SiteCollector(Collector):
    """What `/metrics` shows beside the times of pages. Where the database is away it says only that."""

    def __init__(self, *, kept: float = KEPT_SECONDS) -> None:
        self._kept, self._read_at = kept, 0.0
        self._metrics: list[Metric] = []
        self._lock = threading.Lock()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of the last few seconds; one thread reads, the others wait for it."""
        with self._lock:
            if not self._metrics or time.monotonic() - self._read_at >= self._kept:
                self._metrics, self._read_at = list(read()), time.monotonic()
            return self._metrics

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the database."""
        return ()


def read() -> Iterator[Metric]:
    """Read all metrics."""
    info = GaugeMetricFamily("lace_build_info", "The version of the workbench; always 1.", labels=["version"])
    info.add_metric([settings.SOFTWARE["version"]], 1)
    yield info
    yield from _disk()
    yield from _queues()
    yield from _from_database()


def _from_database() -> Iterator[Metric]:
    up, found = True, []
    try:
        found = [metric for part in PARTS for metric in part()]
    except Error:
        up = False
    yield GaugeMetricFamily("lace_database_up", "Whether the database answered.", value=float(up))
    yield from found


def _queues() -> Iterator[Metric]:
    oldest = GaugeMetricFamily(
        "lace_queue_oldest_seconds",
        "Seconds for which a queue's oldest message has waited.",
        labels=["queue"],
    )
    waiting = GaugeMetricFamily("lace_queue_messages", "Messages that wait in a queue.", labels=["queue"])
    for queue, state in queue_states(QUEUES).items():
        oldest.add_metric([queue], state.oldest_seconds)
        waiting.add_metric([queue], state.messages)
    yield from (oldest, waiting)


def _workers() -> Iterator[Metric]:
    workers = GaugeMetricFamily(
        "lace_workers",
        "Workers of a queue, heard of lately (alive) or not (silent).",
        labels=["queue", "state"],
    )
    heartbeats = list(WorkerHeartbeat.objects.all())
    for queue in QUEUES:
        found = queue_workers(queue, among=heartbeats)
        workers.add_metric([queue, "alive"], found.alive)
        workers.add_metric([queue, "silent"], found.silent)
    yield workers


def _calls() -> Iterator[Metric]:
    where = ["endpoint", "model"]
    calls = CounterMetricFamily(
        "lace_calls", "Requests to models that ended, by outcome.", labels=[*where, "outcome"]
    )
    tokens = CounterMetricFamily("lace_tokens", "Tokens of prompts and of answers.", labels=[*where, "kind"])
    cost = CounterMetricFamily("lace_cost_usd", "Known cost in US dollars.", labels=where)
    totals = call_totals()
    by_outcome: dict[tuple[str, str, str], int] = {}
    for one in totals:
        key = (endpoint_name(one.endpoint), one.model, one.outcome)
        by_outcome[key] = by_outcome.get(key, 0) + one.calls
    for key, number in by_outcome.items():
        calls.add_metric(key, number)
    for name, sums in _by_model(totals).items():
        tokens.add_metric([*name, "prompt"], sum(one.prompt_tokens for one in sums))
        tokens.add_metric([*name, "completion"], sum(one.completion_tokens for one in sums))
        cost.add_metric(name, float(sum(one.cost_usd for one in sums)))
    yield from (calls, tokens, cost)
    circuit = GaugeMetricFamily(
        "lace_endpoint_circuit_open", "Whether calls wait because a model does not answer.", labels=where
    )
    models = {ModelAt(one.endpoint, one.model) for one in totals}
    states = endpoint_states(models=models, broker_url=settings.CELERY_BROKER_URL)
    is_open = {(endpoint_name(at.endpoint), at.model): state.opened_at for at, state in states.items()}
    for name, opened_at in is_open.items():
        circuit.add_metric(name, float(opened_at is not None))
    yield circuit


def _by_model(totals: Iterable[CallSum]) -> dict[tuple[str, str], list[CallSum]]:
    """Group totals by names that users know: several embedded models have one."""
    found: dict[tuple[str, str], list[CallSum]] = {}
    for one in totals:
        found.setdefault((endpoint_name(one.endpoint), one.model), []).append(one)
    return found


def _work() -> Iterator[Metric]:
    flights = GaugeMetricFamily(
        "lace_calls_in_flight",
        "Requests to models without an answer yet, live or in a batch.",
        labels=["mode"],
    )
    open_calls = Attempt.objects.filter(ended_at=None).aggregate(all=Count("id"), batch=Count("batch"))
    flights.add_metric(["live"], open_calls["all"] - open_calls["batch"])
    flights.add_metric(["batch"], open_calls["batch"])
    runs = GaugeMetricFamily("lace_runs", "Runs that are not at their end, by state.", labels=["state"])
    going = Run.objects.filter(state__in=(Run.State.RUNNING, Run.State.PAUSED)).exclude(
        purpose=Run.Purpose.IMPORT
    )
    left = F("units_total") - F("units_done") - F("units_failed")
    by_state = going.values_list("state").annotate(n=Count("id"), left=Sum(left))
    counts = {state: (n, units) for state, n, units in by_state}
    for state in (Run.State.RUNNING, Run.State.PAUSED):
        runs.add_metric([state.value], counts.get(state, (0, 0))[0])
    units = counts.get(Run.State.RUNNING, (0, 0))[1]
    yield from (flights, runs)
    yield GaugeMetricFamily("lace_units_left", "Units that running runs still have to judge.", value=units)
    yield GaugeMetricFamily("lace_runs_stuck", "Running runs that stand still.", value=len(stuck_runs()))
    yield CounterMetricFamily(
        "lace_leases_lost", "Leases taken back from workers that ended or fell silent.", value=leases_lost()
    )
    yield GaugeMetricFamily("lace_database_bytes", "Size of the database.", value=database_bytes())


def _disk() -> Iterator[Metric]:
    free = GaugeMetricFamily("lace_disk_free_bytes", "Free space, by what lies there.", labels=["volume"])
    total = GaugeMetricFamily(
        "lace_disk_total_bytes", "Size of the disk, by what lies there.", labels=["volume"]
    )
    for volume, folder in volumes().items():
        try:
            usage = shutil.disk_usage(folder)
        except OSError:
            continue
        free.add_metric([volume], usage.free)
        total.add_metric([volume], usage.total)
    yield from (free, total)


def volumes() -> dict[str, Path]:
    """Return the folders whose disk may fill up, by name."""
    database = database_folder() if connection.vendor == "sqlite" else None
    return {"data": settings.VAR_DIR} | ({"database": database} if database else {})


PARTS: tuple[Callable[[], Iterator[Metric]], ...] = (_workers, _calls, _work)
