"""Run the application with its workers until Ctrl-C."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from common.commands import WorkbenchCommand
from common.problems import InputProblem, OutsideFailure

# Wait for calls in flight: they are paid for.
STOP_SECONDS = 20


class Command(WorkbenchCommand):
    """Run web server, workers and scheduler as child processes; when one ends, stop the others."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "8000")))
        parser.add_argument("--judges", type=int, default=settings.LACE_JUDGE_WORKERS, metavar="N")
        parser.add_argument(
            "--reload", action="store_true", help="restart when the code changes (development)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        port = options["port"]
        if not 1 <= port <= 65535:
            raise InputProblem(f"--port must be from 1 to 65535, not {port}")
        if options["judges"] < 0:
            raise InputProblem(f"--judges must not be below 0, not {options['judges']}")
        commands = [web_command(port=port, reload=options["reload"]), *worker_commands(options["judges"])]
        signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        refuse_busy(port)
        children = [start(command) for command in commands]
        self.note(f"LACE workbench on http://127.0.0.1:{port}/   (Ctrl-C to stop)")
        try:
            while all(child.poll() is None for child in children):
                time.sleep(0.5)
            raise OutsideFailure("the web server or a worker stopped unexpectedly; see its last lines")
        except KeyboardInterrupt:
            self.note("stopping")
        finally:
            stop(children)


def refuse_busy(port: int) -> None:
    """Raise OutsideFailure when the port is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise OutsideFailure(f"port {port} cannot be used: {error.strerror}") from error


def web_command(*, port: int, reload: bool) -> list[str]:
    """Return the command of the web server: gunicorn with threads, or Django's own with reload."""
    if reload:
        return [sys.executable, "manage.py", "runserver", f"127.0.0.1:{port}"]
    options = ["--worker-class", "gthread", "--workers", "2", "--threads", "4", "--timeout", "60"]
    bind = ["--bind", f"127.0.0.1:{port}", "--log-level", "warning"]
    return [sys.executable, "-m", "gunicorn", "lace_site.wsgi", *bind, *options]


def worker_commands(judges: int) -> list[list[str]]:
    """Return the commands of the Celery workers, one per judge and one default, and of the scheduler."""
    names = [("judge", f"judge{number}") for number in range(1, judges + 1)] + [("default", "default")]
    # Workers coordinate through the database, not with each other.
    alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    workers = [
        [*celery_command("worker"), "-Q", queue, "-n", f"{name}@%h", "--concurrency", "1", *alone]
        for queue, name in names
    ]
    return [*workers, [*celery_command("beat"), "--pidfile="]]


def celery_command(what: str) -> list[str]:
    """Return the command of a Celery process."""
    return [sys.executable, "-m", "celery", "-A", "lace_site", "-q", what, "-l", "warning"]


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a child in its own process group: Ctrl-C does not reach it, and its group can be killed."""
    return subprocess.Popen(command, cwd=settings.BASE_DIR, start_new_session=True)  # noqa: S603


def stop(children: list[subprocess.Popen[bytes]]) -> None:
    """Terminate the children, then kill those that remain."""
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for child in children:
        try:
            child.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
