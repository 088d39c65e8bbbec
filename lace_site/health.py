"""Health checks: what pages need (database, disk), and what work on them needs (broker, queues, workers)."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cache as cache_of_process
from typing import Any, Literal

from celery import current_app
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import Error, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from kombu.exceptions import OperationalError
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from common.disk import database_folder, disk_trouble
from common.memory import memory as cache
from common.queue import QueueState, queue_folder, queue_states
from evaluation.gateway.health import Check
from evaluation.models.runs import WorkerHeartbeat
from evaluation.runs.queries.workers import WEBHOOK_QUEUE, no_worker, queue_workers, time_words
from evaluation.runs.worker.heartbeats import heartbeat
from labeling.models.people import User
from labeling.people.api.authentication import TokenAuthentication

State = Literal["ok", "degraded", "unready"]
STATES: tuple[State, ...] = ("ok", "degraded", "unready")
RIGHT = "labeling.manage_labeling"
QUEUES = ("judge", "default")
# A run's message waits for the time slices of a few other runs; after this long nobody takes it.
OLDEST_MESSAGE = timedelta(minutes=5)
# How long the results of checks that write or connect are kept, in this process.
KEPT_SECONDS = 10
STATUS_KEY = "site_status"
# How long a check waits for a lock of the database.
LOCK_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Part:
    """The state of one part of the site, and one line on it."""

    state: State
    text: str


# ---------- database ----------


def check_database() -> Check:
    """Read a table that every page needs."""
    try:
        with _short_locks():
            User.objects.exists()
    except Error as error:
        return Check(False, f"The database cannot be read: {_line(error)}")
    return Check(True, connection.vendor)


def check_write() -> Check:
    """Write the site's own heartbeat, always the same row: a write that is rolled back needs no disk."""
    try:
        with _short_locks(), transaction.atomic():
            heartbeat(name="site", queues=())
    except Error as error:
        return Check(False, f"The database cannot be written: {_line(error)}")
    return Check(True, connection.vendor)


@contextmanager
def _short_locks() -> Iterator[None]:
    """Do not wait for another program's lock as long as a page would."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = '{LOCK_SECONDS}s'")
            yield
        return
    with connection.cursor() as cursor:
        (usual,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000}")
    try:
        yield
    finally:
        with suppress(Error), connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {usual}")


def _database() -> Part:
    read = check_database()
    check = _kept("write", check_write) if read.ok else read
    return Part("ok", check.detail) if check.ok else Part("unready", check.detail)


def _disk(bad: State) -> Part:
    trouble = disk_trouble(database_folder())
    return Part(bad, f"The database cannot be written: {trouble}") if trouble else Part("ok", "has room")


def _migrations() -> Part:
    """Return whether the tables are those of this version. Newer ones are fine: an update may be going on."""
    with suppress(Error):
        applied = MigrationRecorder(connection).applied_migrations()
        missing = [app for app, names in _newest_migrations() if not any(n in applied for n in names)]
        if missing:
            apps = ", ".join(sorted(missing))
            return Part("degraded", f"Tables of an older version ({apps}): run manage.py migrate")
    return Part("ok", "all applied")


@cache_of_process
def _newest_migrations() -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return each app's newest migrations, with what a squashed one replaces; read once in a process."""
    graph = MigrationLoader(None).graph
    return tuple(
        (app, ((app, name), *graph.nodes[app, name].replaces[-1:])) for app, name in graph.leaf_nodes()
    )


# ---------- broker, queues, workers ----------


def check_broker() -> Check:
    """Open a connection to the broker; a folder must be there and writable."""
    folder = queue_folder()
    if folder and not (folder.is_dir() and os.access(folder, os.R_OK | os.W_OK)):
        return Check(False, f"The broker's folder {folder} is missing or cannot be written")
    if folder and (trouble := disk_trouble(folder)):
        return Check(False, f"The broker's folder cannot be written: {trouble}")
    try:
        with current_app.connection_for_write(connect_timeout=2) as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
            return Check(True, str(broker.transport_cls))
    except (OperationalError, OSError) as error:
        return Check(False, f"The broker does not answer: {_line(error)}")


def _broker() -> Part:
    check = _kept("broker", check_broker)
    return Part("ok" if check.ok else "degraded", check.detail)


def _queue(queue: str, state: QueueState) -> Part:
    """Return how long the oldest message waits."""
    waits = timedelta(seconds=state.oldest_seconds)
    if waits > OLDEST_MESSAGE:
        return Part("degraded", f"A message of the queue {queue} has waited for {time_words(waits)}")
    return Part("ok", f"no message has waited for more than {time_words(OLDEST_MESSAGE)}")


def _workers(queue: str, heartbeats: list[WorkerHeartbeat]) -> Part:
    workers = queue_workers(queue, among=heartbeats)
    if not workers.alive:
        return Part("degraded", f"{no_worker(workers.heard_at)} (queue {queue})")
    if workers.silent:
        of = workers.alive + workers.silent
        return Part("degraded", f"{workers.silent} of {of} workers of the queue {queue} are not heard of")
    heard = time_words(timezone.now() - workers.heard_at) if workers.heard_at else ""
    return Part("ok", f"{workers.alive} running, heard of {heard} ago")


# ---------- children of `serve` ----------


def _serve() -> Part | None:
    """Return what `serve` says of its children; None where none runs."""
    try:
        told = json.loads((settings.SITE_DIR / "serve.json").read_text("utf-8"))
        os.kill(told["pid"], 0)
        troubled = [
            f"{child['name']}: {child['state']}" for child in told["children"] if child["state"] != "running"
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if troubled:
        return Part("degraded", f"Processes that ended: {', '.join(troubled)}")
    return Part("ok", "all processes run")


# ---------- all parts ----------


def site_parts() -> dict[str, Part]:
    """Return the state of every part of the site. Writes one row, at most every KEPT_SECONDS."""
    database = _database()
    tables = {"migrations": _kept("migrations", _migrations)} if database.state == "ok" else {}
    return {"database": database, **tables, **_other_parts(_disk("unready"))}


def _other_parts(disk: Part) -> dict[str, Part]:
    """Return all parts but the database; one query."""
    parts = {"disk": disk} if database_folder() else {}
    parts["broker"] = _broker()
    if parts["broker"].state == "ok":
        parts |= {f"queue {queue}": _queue(queue, state) for queue, state in queue_states(QUEUES).items()}
    with suppress(Error):  # said of the database
        heartbeats = list(WorkerHeartbeat.objects.all())
        # Sites without webhooks may run without their worker: the pages of webhooks say that none runs.
        webhooks = (WEBHOOK_QUEUE,) if any(WEBHOOK_QUEUE in row.queues for row in heartbeats) else ()
        parts |= {f"worker {queue}": _workers(queue, heartbeats) for queue in (*QUEUES, *webhooks)}
    if serve := _serve():
        parts["serve"] = serve
    return parts


def worst(parts: dict[str, Part]) -> State:
    """Return the worst state of these parts."""
    return max((part.state for part in parts.values()), key=STATES.index, default="ok")


def site_status() -> tuple[str, ...]:
    """Return what is wrong with the site, a sentence each, for pages: reads only, kept KEPT_SECONDS."""

    def read() -> tuple[str, ...]:
        parts = _other_parts(_disk("unready"))
        return tuple(f"{part.text}." for part in parts.values() if part.state != "ok")

    found: tuple[str, ...] = _kept(STATUS_KEY, read)
    return found


def _kept(key: str, check: Callable[[], Any]) -> Any:
    return cache.get_or_set(key, check, KEPT_SECONDS)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


# ---------- routes ----------


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while the process runs."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 503 where pages cannot be served, else 200; leads and their tokens also get the parts."""
    parts = site_parts()
    status = worst(parts)
    body: dict[str, Any] = {"status": status}
    if _may_read(request):
        body["parts"] = {name: asdict(part) for name, part in parts.items()}
    return JsonResponse(body, status=503 if status == "unready" else 200)


def _may_read(request: HttpRequest) -> bool:
    """Return whether a lead asks, by session or token; False if the database cannot say so."""
    try:
        found = TokenAuthentication().authenticate(Request(request))
        return (found[0] if found else request.user).has_perm(RIGHT)
    except (Error, AuthenticationFailed):
        return False
