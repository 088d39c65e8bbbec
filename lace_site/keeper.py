"""Keeps child processes alive: each that dies is started again, and only a crash loop ends that."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.utils import timezone

TIED = Path(__file__).with_name("tied.py")
# Wait for calls in flight: they are paid for.
STOP_SECONDS = 20
LONGEST_PAUSE, LONGEST_PAUSE_OF_WEB = 30.0, 4.0  # seconds before a restart
LONG_LIFE = 60.0  # seconds of life after which the pauses start again from the shortest
CRASH_LOOP, WITHIN = 10, 300.0  # deaths within so many seconds
WEB_FIRST = 10.0  # seconds that the others wait for a web server that does not answer
STOPPED_SECONDS = 2.0  # a process that is stopped for so long is killed: it may hold the database's lock


class State(StrEnum):
    """What a child is doing."""

    RUNNING = "running"
    RESTARTING = "restarting"
    GIVEN_UP = "given up"


@dataclass
class Child:
    """One child of `serve`. Without it there may be no pages (`web`): it is never given up.

    `files` are the open files it inherits. Times (`now`) are seconds of the monotonic clock.
    """

    name: str
    command: list[str]
    web: bool = False
    files: tuple[int, ...] = ()
    state: State = State.RESTARTING
    process: subprocess.Popen[bytes] | None = None
    since: str = ""
    restarts: int = -1
    quick_deaths: int = 0
    begun: float = 0.0
    due: float = 0.0
    stopped_at: float | None = None
    deaths: deque[float] = field(default_factory=lambda: deque(maxlen=CRASH_LOOP))

    def start(self, now: float) -> None:
        """Start it."""
        self.process, self.begun, self.state = start(self.command, self.files), now, State.RUNNING
        self.since, self.restarts = timezone.now().isoformat(), self.restarts + 1
        self.stopped_at = None

    def died(self, code: int, now: float) -> str:
        """Note its death, and when it is due again; one line about it."""
        self.process, self.state = None, State.RESTARTING
        self.since = timezone.now().isoformat()
        self.deaths.append(now)
        self.quick_deaths = 1 if now - self.begun >= LONG_LIFE else self.quick_deaths + 1
        end = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if self.in_crash_loop():
            self.state = State.GIVEN_UP
            times = f"for the {CRASH_LOOP}th time within {WITHIN / 60:.0f} minutes"
            return f"{self.name} {end} {times} and stays down: see its last lines, then start serve again"
        pause = pause_of_web(self.quick_deaths) if self.web else pause_before(self.quick_deaths)
        self.due = now + pause
        return f"{self.name} {end} and is started again{f' in {pause:.0f} s' if pause else ''}"

    def is_frozen(self, now: float) -> bool:
        """Return whether somebody stopped it (SIGSTOP) and does not let it go on."""
        if self.process is None or not is_stopped(self.process.pid):
            self.stopped_at = None
            return False
        self.stopped_at = now if self.stopped_at is None else self.stopped_at
        return now - self.stopped_at >= STOPPED_SECONDS

    def in_crash_loop(self) -> bool:
        """Return whether it died too often in too short a time."""
        full = len(self.deaths) == CRASH_LOOP
        return full and self.deaths[-1] - self.deaths[0] <= WITHIN and not self.web

    def told(self) -> dict[str, Any]:
        """Return what other processes may know of it."""
        pid = self.process.pid if self.process else None
        return {
            "name": self.name,
            "pid": pid,
            "since": self.since,
            "restarts": self.restarts,
            "state": self.state.value,
        }


def pause_before(deaths: int) -> float:
    """
    Return the seconds before a restart after so many quick deaths in a row.

    Examples
    --------
    >>> [pause_before(deaths) for deaths in range(1, 8)]
    [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    """
    return min(LONGEST_PAUSE, 2.0 ** min(deaths - 1, 10))


def pause_of_web(deaths: int) -> float:
    """
    Return the same for the web server, for which people wait.

    Examples
    --------
    >>> [pause_of_web(deaths) for deaths in range(1, 6)]
    [0.0, 1.0, 2.0, 4.0, 4.0]
    """
    return min(LONGEST_PAUSE_OF_WEB, 2.0 ** min(deaths - 2, 10)) if deaths > 1 else 0.0


class Keeper:
    """Starts children and keeps them; `record` is the file that tells other processes about them.

    `url` is the address of the pages.
    """

    def __init__(
        self, children: Iterable[Child], *, say: Callable[[str], object], record: Path, url: str = ""
    ) -> None:
        self.children = list(children)
        self.url = url
        self._say, self._record = say, record

    def start(self, *, web_first: bool = False) -> None:
        """Start all of them; with `web_first` the others wait for `start_others`."""
        now = time.monotonic()
        for child in self.children:
            if web_first and not child.web:
                child.due = now + WEB_FIRST
            else:
                child.start(now)
        self.write()

    def start_others(self) -> None:
        """Start at the next look those that wait for their first start."""
        for child in self.children:
            child.due = 0.0 if child.restarts < 0 else child.due

    def look(self, now: float) -> None:
        """See who died since the last look, and start again who is due."""
        changed = False
        for child in self.children:
            if child.is_frozen(now) and child.process is not None:
                self.say(f"{child.name} was stopped and does nothing: it is killed")
                kill_group(child.process.pid)
            if child.process is not None and (code := child.process.poll()) is not None:
                kill_group(child.process.pid)
                self.say(child.died(code, now))
                changed = True
            if child.state == State.RESTARTING and now >= child.due:
                self._start_again(child, now)
                changed = True
        if changed:
            self.write()

    def say(self, line: str) -> None:
        """Say a line; a full disk or a closed terminal must not end the children."""
        with contextlib.suppress(OSError):
            self._say(line)

    def _start_again(self, child: Child, now: float) -> None:
        """Start a child that died; without a free process or memory try again later."""
        try:
            child.start(now)
        except OSError as error:
            child.due = now + LONGEST_PAUSE_OF_WEB
            self.say(f"{child.name} cannot be started: {error.strerror}")

    def stop(self) -> None:
        """End all of them, and what is told about them."""
        stop([child.process for child in self.children if child.process is not None])
        with contextlib.suppress(OSError):
            self._record.unlink(missing_ok=True)

    def write(self) -> None:
        """Tell other processes; a full disk must not end the children."""
        told = {"pid": os.getpid(), "url": self.url, "children": [child.told() for child in self.children]}
        try:
            write_private(self._record, told)
        except OSError as error:
            self.say(f"{self._record} cannot be written: {error.strerror}")


def is_stopped(pid: int) -> bool:
    """Return whether a process was stopped by a signal; one under a debugger was not."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def write_private(path: Path, document: Mapping[str, Any]) -> None:
    """Write JSON that only its owner may read, and that nobody sees half written. Raises OSError."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(document, file)
    part.replace(path)


def start(command: list[str], files: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    """Start a child that ends with this process and inherits these open files.

    It leads a process group: Ctrl-C does not reach it, and its group can be killed.
    """
    tied = [sys.executable, "-I", "-S", str(TIED), str(os.getpid()), *command]
    return subprocess.Popen(  # noqa: S603  the commands of `serve`
        tied, cwd=settings.BASE_DIR, start_new_session=True, pass_fds=files
    )


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
            kill_group(child.pid)
            child.wait()


def kill_group(leader: int) -> None:
    """kill -9 of what is left of a child's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
