"""Runs for real Celery workers: launched as from the page, waited for, and the tasks of this process."""

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from django.db import connection

from bench._workers import Workers, broker
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.management.commands.run_control import Command
from evaluation.models.runs import Run
from evaluation.runs.services.control import run_launch
from evaluation.runs.services.runs import RunChoice
from lace_site import celery_app
from tests.factories.runs import Ended, environment

PATIENCE = 60
# Tasks do not depend on the database: each broker is tried with one of the two.
BROKER = "valkey" if connection.vendor == "postgresql" else "filesystem"


@contextmanager
def workers_with(kind: str, base_url: str, folder: Path, *, judges: int = 1, **env: str) -> Iterator[Workers]:
    """A broker of this kind with a worker group on this test's database."""
    with (
        broker(kind, folder) as settings,
        Workers(
            environment(base_url, **settings, **env), log=folder / "workers.log", judges=judges
        ) as workers,
    ):
        yield workers


def launched(chat_set: Any, *, engine: Any = "direct", **run: Any) -> Run:
    """A run for the workers, planned as from the page or the API."""
    judge, choice = JudgeSpec(engine=engine), RunChoice(**run)
    return run_launch(chat_set=chat_set, judge=judge, run=choice, endpoint=current_endpoint(), by=None)


def not_enqueued(run: Run) -> Run:
    """A task enqueued here reaches no worker of another broker: mark the run as not enqueued."""
    Run.objects.filter(pk=run.pk).update(rung_at=None)
    return run


def control(run: Run, action: str, *options: str) -> Ended:
    """`manage.py run_control ID ACTION --json` as a shell sees it."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            Command().run_from_argv(["manage.py", "run_control", str(run.pk), action, *options, "--json"])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ended(code, out.getvalue(), err.getvalue(), json.loads(out.getvalue() or "{}"))


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def ended(run: Run, *, log: Path, seconds: float = PATIENCE) -> Run:
    """The run once it is no longer running."""
    deadline = time.monotonic() + seconds
    while run.state == Run.State.RUNNING:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
        run.refresh_from_db()
    return run


def purge_tasks() -> None:
    """Delete the tasks of earlier tests from this process's broker."""
    with celery_app.connection_for_write() as broker:
        broker.default_channel.queue_declare("judge")
        broker.default_channel.queue_purge("judge")
