"""Run the application with its workers until Ctrl-C."""

import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from common.commands import WorkbenchCommand
from common.problems import InputProblem, OutsideFailure
from evaluation.runs.queries.workers import WEBHOOK_QUEUE
from labeling.people.queries.people import accounts_exist
from labeling.people.services.invitations import setup_code
from lace_site.keeper import STOP_SECONDS, Child, Keeper
from lace_site.management.commands.setup_code import setup_link

HOST = "127.0.0.1"
LOOK_SECONDS = 0.2
PORTS_TRIED = 20  # of --next-free-port
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Command(WorkbenchCommand):
    """Run web servers, workers and scheduler as child processes; one that dies is started again."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        default = int(os.environ.get("PORT", "8000"))
        parser.add_argument("--port", type=int, default=default, help="port; the variable PORT sets it, too")
        parser.add_argument(
            "--next-free-port",
            action="store_true",
            help=f"take the next free port, of {PORTS_TRIED}, where another program has this one",
        )
        judges = settings.LACE_JUDGE_WORKERS
        parser.add_argument("--judges", type=int, default=judges, metavar="N", help="judge workers")
        parser.add_argument(
            "--reload", action="store_true", help="restart when the code changes (development)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        port = options["port"]
        if not 1 <= port <= 65535:
            raise InputProblem(f"--port must be from 1 to 65535, not {port}")
        if options["judges"] < 0:
            raise InputProblem(f"--judges must not be below 0, not {options['judges']}")
        # NB: nohup ignores SIGHUP, and so does what it starts.
        for number in (one for one in STOPS if signal.getsignal(one) != signal.SIG_IGN):
            signal.signal(number, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with self.listening(port, or_next=options["next_free_port"]) as listener:
            port = listener.getsockname()[1]
            # For links in e-mails: the children read it with the other settings.
            os.environ.setdefault("SITE_URL", f"http://{HOST}:{port}")
            refuse_broken_database()
            refuse_broken_broker()
            if options["reload"]:
                listener.close()
                web = [Child("web", [sys.executable, "manage.py", "runserver", f"{HOST}:{port}"], web=True)]
            else:
                web = web_children(listener)
            workers = [Child(name, command) for name, command in worker_commands(options["judges"]).items()]
            settings.SITE_DIR.mkdir(parents=True, exist_ok=True)
            record = settings.SITE_DIR / "serve.json"
            keeper = Keeper([*web, *workers], say=self.note, record=record, url=f"http://{HOST}:{port}")
            self.keep(keeper, listener, port)

    def listening(self, port: int, *, or_next: bool) -> socket.socket:
        """Return a socket that listens on the port, or on the next free one, and say so."""
        if or_next and is_open(port):
            free = (one for one in range(port + 1, min(port + PORTS_TRIED, 65536)) if not is_open(one))
            if (other := next(free, None)) is not None:
                self.note(f"port {port} is taken by {holder(port)}: this site takes port {other}")
                return listening(other)
        return listening(port)

    def keep(self, keeper: Keeper, listener: socket.socket, port: int) -> None:
        """Keep the children alive until Ctrl-C; say once that the pages can be opened."""
        announced = False
        try:
            keeper.start(web_first=True)
            while True:
                time.sleep(LOOK_SECONDS)
                keeper.look(time.monotonic())
                if not announced and answers(port):
                    keeper.start_others()
                    keeper.say(f"LACE workbench on http://{HOST}:{port}/   (Ctrl-C to stop)")
                    if link := first_account_link(keeper.url):
                        keeper.say(f"No account yet. Create the first one, a lead's: {link}")
                    announced = True
        except KeyboardInterrupt:
            keeper.say("stopping")
        finally:
            for number in STOPS:  # a second one would leave children behind; the stop is bounded
                signal.signal(number, signal.SIG_IGN)
            listener.close()  # what comes now is refused at once
            keeper.stop()


def first_account_link(site: str) -> str:
    """Return the address that creates the first account; "" where there is one, or the database is away."""
    try:
        return "" if accounts_exist() else setup_link(site, setup_code())
    except DatabaseError:
        return ""
    finally:
        connection.close()


def listening(port: int) -> socket.socket:
    """Return a socket that listens on the port; raises OutsideFailure when it is in use."""
    try:
        return socket.create_server((HOST, port), backlog=2048)
    except OSError as error:
        why = f"is taken by {holder(port)}" if is_open(port) else f"cannot be used: {error.strerror}"
        raise OutsideFailure(f"port {port} {why}") from error


def is_open(port: int) -> bool:
    """Return whether somebody listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def answers(port: int) -> bool:
    """Return whether a web server answers on the port."""
    server = HTTPConnection(HOST, port, timeout=1)
    try:
        server.request("GET", "/healthz")
        return server.getresponse().status > 0
    except (OSError, HTTPException):
        return False
    finally:
        server.close()


def holder(port: int) -> str:
    """Return who listens on a port, as far as this account may know."""
    try:
        for one in psutil.net_connections("tcp"):
            if one.laddr and one.laddr.port == port and one.status == psutil.CONN_LISTEN and one.pid:
                return f"{psutil.Process(one.pid).name()} (process {one.pid})"
    except psutil.Error:
        pass
    return "another program"


def refuse_broken_database() -> None:
    """Raise OutsideFailure when an SQLite file cannot be used; a database server may come back."""
    if connection.vendor != "sqlite":
        return
    name = connection.settings_dict["NAME"]
    if not Path(name).exists():
        raise InputProblem(f"there is no database {name}: run manage.py migrate")
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except DatabaseError as error:
        if "no such table" in str(error):
            raise
        raise OutsideFailure(f"the database {name} cannot be used: {error}") from error
    finally:
        connection.close()


def refuse_broken_broker() -> None:
    """Raise OutsideFailure when the folder broker cannot be written."""
    if not settings.CELERY_BROKER_URL.startswith("filesystem://"):
        return
    queue = settings.BROKER_DIR / "queue"
    probe = queue / f"{os.getpid()}.part"
    try:
        queue.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutsideFailure(
            f"the broker's folder {settings.BROKER_DIR} cannot be used: {error.strerror}"
        ) from error


def web_children(listener: socket.socket, *, application: str = "lace_site.wsgi") -> list[Child]:
    """Return two web servers on one listening socket: while one starts again, the other answers."""
    command = web_command(f"fd://{listener.fileno()}", application=application)
    return [Child(name, command, web=True, files=(listener.fileno(),)) for name in ("web1", "web2")]


def web_command(bind: str, *, application: str = "lace_site.wsgi") -> list[str]:
    """Return the command of a web server: gunicorn with one process and its threads."""
    # Preloaded: a process that died is a fork away, and an error at the start ends the server.
    options = ["--preload", "--worker-class", "gthread", "--workers", "1", "--threads", "4"]
    limits = ["--timeout", "60", "--graceful-timeout", str(STOP_SECONDS), "--log-level", "warning"]
    return [sys.executable, "-m", "gunicorn", application, "--bind", bind, *options, *limits]


def worker_commands(judges: int) -> dict[str, list[str]]:
    """Return the commands by name: Celery workers, one per judge, default and webhooks, and the clock."""
    queues = {f"judge{number}": "judge" for number in range(1, judges + 1)} | {"default": "default"}
    # Workers coordinate through the database, not with each other.
    alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    workers = {
        name: [*celery_command("worker"), "-Q", queue, "-n", f"{name}@%h", "--concurrency", "1", *alone]
        for name, queue in queues.items()
    }
    # Each of its threads sends to one webhook: a receiver that hangs holds up no other.
    threads = ["-Q", WEBHOOK_QUEUE, "-n", "webhooks@%h", "--pool", "threads", "--concurrency", "8"]
    workers["webhooks"] = [*celery_command("worker"), *threads, *alone]
    return workers | {"clock": [*celery_command("beat"), "--pidfile="]}


def celery_command(what: str) -> list[str]:
    """Return the command of a Celery process."""
    return [sys.executable, "-m", "celery", "-A", "lace_site", "-q", what, "-l", "warning"]
