"""Thirty kinds of fault, done to a whole site from outside, and how each ends."""

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil
import psycopg

from bench._site import Site


def nothing(site: Site) -> None:
    """The fault is over by itself."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done to a site (`strike`), and how it ends (`heal`) after so many seconds.

    `pages` says that pages can be served meanwhile.
    """

    name: str
    strike: Callable[[Site], None]
    heal: Callable[[Site], None] = nothing
    seconds: float = 8.0
    database: str = "sqlite"
    broker: str = "filesystem"
    pages: bool = True
    environment: dict[str, str] = field(default_factory=dict)
    possible: Callable[[], bool] = lambda: True
    disk: bool = False


# ---------- processes ----------


def _killed(*words: str) -> Callable[[Site], None]:
    """kill -9 of one child and what it started."""

    def strike(site: Site) -> None:
        child = site.child(*words)
        for process in [*child.children(recursive=True), child]:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    return strike


def _web_worker_killed(site: Site) -> None:
    site.child("gunicorn").children()[0].kill()


def _everything_killed(site: Site) -> None:
    """As by a power cut; then it is started again."""
    for process in site.processes():
        with suppress(psutil.NoSuchProcess):
            process.kill()
    site.serve()


def _parent_killed(site: Site) -> None:
    """Only `serve` itself: its children have to end, or the port stays taken."""
    children = site.parent.children(recursive=True)
    site.parent.kill()
    _, alive = psutil.wait_procs(children, timeout=60)  # calls in flight end first
    if alive:
        raise RuntimeError(f"outlived serve: {[' '.join(one.cmdline()) for one in alive]}")
    site.serve()


def _stopped_and_started(site: Site) -> None:
    assert site.serving is not None
    site.serving.send_signal(signal.SIGTERM)
    site.serving.wait(60)
    site.serve()


def _sent(signal_number: int, *words: str) -> Callable[[Site], None]:
    """A signal to one child and what it started."""

    def send(site: Site) -> None:
        child = site.child(*words)
        for process in [child, *child.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal_number)

    return send


def _killed_again_and_again(site: Site) -> None:
    """The judge worker, five times in a row."""
    for _ in range(5):
        with suppress(RuntimeError):
            _killed("judge1@")(site)
        with suppress(psutil.TimeoutExpired, psutil.NoSuchProcess):
            site.parent.wait(1)


# ---------- broker ----------


def _broker(site: Site) -> Path:
    return Path(site.environment["LACE_BROKER_DIR"])


def _broker_deleted(site: Site) -> None:
    shutil.rmtree(_broker(site), ignore_errors=True)


def _broker_is_a_file(site: Site) -> None:
    _broker_deleted(site)
    with suppress(OSError):
        _broker(site).write_text("", encoding="utf-8")


def _broker_is_no_file(site: Site) -> None:
    with suppress(OSError):
        _broker(site).unlink()


def _message(data: bytes, *, queue: str = "judge", count: int = 1) -> Callable[[Site], None]:
    """Unreadable messages in the queue's folder."""

    def strike(site: Site) -> None:
        folder = _broker(site) / "queue"
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (folder / f"1_{number}.{queue}.msg").write_bytes(data)

    return strike


def _half_written(site: Site) -> None:
    folder = _broker(site) / "queue"
    for number in range(1000):
        (folder / f"1_{number}.judge.msg.{number}.part").write_bytes(b"{")


def _no_temporary_folder(site: Site) -> None:
    shutil.rmtree(site.environment["TMPDIR"])


def _temporary_folder(site: Site) -> None:
    Path(site.environment["TMPDIR"]).mkdir(exist_ok=True)


def _valkey(action: str) -> Callable[[Site], None]:
    return lambda site: getattr(site.world["valkey"], action)()


# ---------- endpoint ----------


def _endpoint(**options: Any) -> Callable[[Site], None]:
    """From now on every reply is this step."""
    return lambda site: site.server.set(script=[options])


def _endpoint_well(site: Site) -> None:
    site.server.set(script=[])


def _resumed(site: Site) -> None:
    """A lead mends the key and resumes the run."""
    _endpoint_well(site)
    with suppress(httpx2.HTTPStatusError):  # it was not paused
        site.ask("POST", f"/api/runs/{site.run_id}/resume/")


def _endpoint_frozen(number: int) -> Callable[[Site], None]:
    return lambda site: os.kill(site.server.pid, number)


# ---------- database ----------


def _file(site: Site) -> Path:
    return Path(site.environment["DATABASE_URL"].removeprefix("sqlite:///"))


def _locked(site: Site) -> None:
    lock = sqlite3.connect(_file(site), timeout=30, check_same_thread=False)
    lock.execute("BEGIN EXCLUSIVE")
    site.world["lock"] = lock


def _unlocked(site: Site) -> None:
    site.world.pop("lock").close()


def _moved(site: Site, *, back: bool = False) -> None:
    for suffix in ("", "-wal", "-shm"):
        here = _file(site).with_name(_file(site).name + suffix)
        away = here.with_name(f"{here.name}.away")
        with suppress(FileNotFoundError):
            (away if back else here).rename(here if back else away)


def _full(site: Site) -> None:
    """Fill the disk of the database up to the last byte."""
    filler = _file(site).with_name("filler")
    with filler.open("wb", buffering=0) as file, suppress(OSError):  # a buffer would fail on closing
        while True:
            file.write(b"\0" * 4096)


def _emptied(site: Site) -> None:
    _file(site).with_name("filler").unlink()


def _may_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


def _postgres_stopped(site: Site) -> None:
    site.world["postgres"].stop()


def _postgres_started(site: Site) -> None:
    site.world["postgres"].ensure_postgres_running()


def _postgres_restarted(site: Site) -> None:
    _postgres_stopped(site)
    _postgres_started(site)


def _connections_cut(site: Site) -> None:
    site.world["postgres"].psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND datname = 'postgres'"
    )


def _table_locked(site: Site) -> None:
    """Another session holds the tables of runs and labels."""
    folder = str(site.world["postgres"].get_postmaster_info().socket_dir)
    holder = psycopg.connect(host=folder, user="postgres", dbname="postgres")
    holder.execute("LOCK TABLE evaluation_unit, labeling_label IN ACCESS EXCLUSIVE MODE")
    site.world["lock"] = holder


JUDGE, DEFAULT, BEAT, WEB = ("judge1@",), ("default@",), (" beat",), ("gunicorn",)

FAULTS = (
    Fault("judge worker killed", _killed(*JUDGE)),
    Fault("judge worker killed five times", _killed_again_and_again),
    Fault("default worker killed", _killed(*DEFAULT)),
    Fault("clock killed", _killed(*BEAT)),
    Fault("one web process killed", _web_worker_killed),
    Fault("web server killed", _killed(*WEB)),
    Fault("judge worker frozen", _sent(signal.SIGSTOP, *JUDGE), _sent(signal.SIGCONT, *JUDGE)),
    Fault("default worker frozen", _sent(signal.SIGSTOP, *DEFAULT), _sent(signal.SIGCONT, *DEFAULT)),
    Fault("everything killed, started again", _everything_killed, pages=False, seconds=0),
    Fault("serve killed, started again", _parent_killed, pages=False, seconds=0),
    Fault("stopped and started", _stopped_and_started, pages=False, seconds=0),
    Fault("broker folder deleted", _broker_deleted),
    Fault("broker folder is a file", _broker_is_a_file, _broker_is_no_file),
    Fault("empty message", _message(b"")),
    Fault("message that is no JSON", _message(b"\0\xff{")),
    Fault("hundred unreadable messages", _message(b"[]", count=100)),
    Fault("thousand half-written messages", _half_written),
    Fault("temporary folder gone", _no_temporary_folder, _temporary_folder),
    Fault("Valkey away", _valkey("stop"), _valkey("start"), broker="valkey"),
    Fault("endpoint answers 500", _endpoint(status=500), _endpoint_well),
    Fault("endpoint answers 429", _endpoint(status=429, retry_after=5), _endpoint_well),
    Fault("endpoint answers web pages", _endpoint(body="html"), _endpoint_well),
    Fault("endpoint closes connections", _endpoint(close=True), _endpoint_well),
    Fault("endpoint hangs", _endpoint_frozen(signal.SIGSTOP), _endpoint_frozen(signal.SIGCONT), seconds=15),
    Fault("endpoint refuses the key", _endpoint(status=401), _resumed),
    Fault("database locked by another program", _locked, _unlocked, pages=False),
    Fault("database file moved away", _moved, lambda site: _moved(site, back=True), pages=False),
    Fault("disk full", _full, _emptied, pages=False, disk=True, possible=_may_mount),
    Fault("PostgreSQL away", _postgres_stopped, _postgres_started, database="postgres", pages=False),
    Fault("PostgreSQL cuts all connections", _connections_cut, database="postgres"),
    Fault("PostgreSQL tables locked", _table_locked, _unlocked, database="postgres", pages=False),
)
