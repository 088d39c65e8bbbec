"""A whole site, `manage.py serve`, with a run in work and a rater who saves, to be broken."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import psutil
from django.conf import settings

from bench._child import in_child
from bench._endpoint import MODEL, Server
from bench._workers import free_port

CHATS, SLOTS = 300, 4
LATENCY, QUICK = 1.0, 0.02  # seconds a call: while something is broken, and to end the run
START_SECONDS, END_SECONDS = 180.0, 180.0
SAVE_EVERY, SAVE_TIMEOUT = 0.1, 20.0
FROM_PROXY = {"X-Forwarded-Proto": "https"}  # where HTTPS is on: TLS ends before the site


def prepare(chats: int) -> dict[str, Any]:
    """In a process of its own, on an empty database: chats, a rater with a chat in work, tokens."""
    from django.core.management import call_command

    from labeling.models.people import Role
    from labeling.people.services.roles import PERMISSIONS
    from labeling.people.services.tokens import token_create
    from tests.factories.labelling_job import make_desk, user_of
    from tests.factories.rows import make_user

    call_command("migrate", verbosity=0)
    desk = make_desk(chats=chats, raters=1, keys=("polite", "correct"))
    lead = make_user("lead", Role.LEAD)
    tokens = {
        "lead": token_create(user=lead, name="bench", scopes=PERMISSIONS[Role.LEAD], days=1).secret,
        "rater": token_create(
            user=user_of(desk.rater), name="bench", scopes=PERMISSIONS[Role.RATER], days=1
        ).secret,
    }
    return {"tokens": tokens, "set": desk.chat_set.name, "assignment": desk.taken().pk}


def stored() -> dict[str, Any]:
    """In a process of its own: what the database has of the newest run and of the labels."""
    from django.db.models import Count

    from evaluation.models.runs import Attempt, Run, Verdict
    from labeling.models.labels import LabelRevision

    run = Run.objects.latest("id")
    verdicts = Verdict.objects.filter(run=run)
    doubled = verdicts.values("chat", "criterion").annotate(n=Count("id")).filter(n__gt=1).count()
    return {
        "missing": run.run_chats.count() * run.judge.prompts.count() - verdicts.filter(state="read").count(),
        "doubled": doubled,
        "unknown": Attempt.objects.filter(run=run, outcome=Attempt.Outcome.UNKNOWN).count(),
        "labels": [str(one) for one in LabelRevision.objects.values_list("client_id", flat=True)],
    }


@dataclass
class Rater(threading.Thread):
    """Saves one answer after the other; what was not answered is sent again, as the page does."""

    url: str
    token: str
    sent: set[str] = field(default_factory=set)
    answered: dict[str, float] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        """Until `over` is set."""
        headers, number = {"Authorization": f"Token {self.token}"}, 0
        while not self.over.is_set():
            client_id, number = str(uuid.uuid4()), number + 1
            self.sent.add(client_id)
            body = {"client_id": client_id, "value": number % 2 == 0}
            while not self.over.is_set():
                with suppress(httpx2.HTTPError):
                    if httpx2.put(self.url, json=body, headers=headers, timeout=SAVE_TIMEOUT).is_success:
                        self.answered[client_id] = time.monotonic()
                        break
                time.sleep(SAVE_EVERY)
            time.sleep(SAVE_EVERY)

    def silent(self, since: float) -> float:
        """Return the longest time without an answer since then, in seconds."""
        times = [since, *(at for at in self.answered.values() if at > since), time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(times))

    def answered_after(self, moment: float) -> bool:
        """Return whether a save was answered after that moment."""
        return any(at > moment for at in self.answered.values())


class Site:
    """`manage.py serve` on a database and a broker; `start` begins a run and a rater's work."""

    def __init__(self, folder: Path, server: Server, environment: Mapping[str, str]) -> None:
        self.folder, self.server = folder, server
        self.environment = {
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "bench",
            "LACE_REASONING_MODEL": MODEL,
            "LACE_MAX_IN_FLIGHT": str(SLOTS),
            "LACE_REQUEST_TIMEOUT": "10",
            "LACE_REASONING_TIMEOUT": "10",
            "DJANGO_SETTINGS_MODULE": "lace_site.settings",
            "DEBUG": "on",
            "TMPDIR": str(folder / "tmp"),
            **environment,
        }
        (folder / "tmp").mkdir()
        self.code = settings.BASE_DIR  # the version that is served
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "serve.log"
        self.world: dict[str, Any] = {}
        self.run_id = 0
        self.serving: subprocess.Popen[bytes] | None = None
        self.rater: Rater | None = None

    # ---------- the process ----------

    def serve(self) -> None:
        """Start `manage.py serve` and wait for its first answer."""
        with self.log.open("ab") as log:
            self.serving = subprocess.Popen(
                [sys.executable, "manage.py", "serve", "--port", str(self.port)],
                cwd=self.code,
                env=os.environ | self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(self.answers, START_SECONDS, "the site's first answer")

    def answers(self) -> bool:
        """Whether the web server answers."""
        if self.serving is not None and self.serving.poll() is not None:
            raise RuntimeError(f"serve has ended: {self.log.read_text(errors='replace')[-1000:]}")
        with suppress(httpx2.HTTPError):
            return httpx2.get(f"{self.url}/healthz", headers=FROM_PROXY, timeout=5).is_success
        return False

    @property
    def parent(self) -> psutil.Process:
        """The process of `serve`."""
        assert self.serving is not None
        return psutil.Process(self.serving.pid)

    def processes(self) -> list[psutil.Process]:
        """Every process of the site that lives; none before it is served."""
        if self.serving is None:
            return []
        with suppress(psutil.NoSuchProcess):
            return [self.parent, *self.parent.children(recursive=True)]
        return []

    def child(self, *words: str) -> psutil.Process:
        """The child of `serve` whose command has these words."""
        for child in self.parent.children():
            with suppress(psutil.Error):
                if all(word in " ".join(child.cmdline()) for word in words):
                    return child
        raise RuntimeError(f"no process of {' '.join(words)}")

    def cpu_seconds(self) -> float:
        """CPU time of all living processes so far."""
        total = 0.0
        for process in self.processes():
            with suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def stop(self) -> None:
        """An orderly end."""
        if self.rater is not None:
            self.rater.over.set()
        left = self.processes()
        if self.serving is not None and self.serving.poll() is None:
            self.serving.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.serving.wait(30)
        for process in left:
            with suppress(psutil.Error):
                process.kill()

    # ---------- the work ----------

    def start(self, *, world: dict[str, Any]) -> Rater:
        """Serve a prepared database, start a run and a rater, and wait until both go on; the rater."""
        self.world = world
        self.serve()
        body = {"set": world["set"], "engine": "direct", "grouping": "criterion"}
        answer = self.ask("POST", "/api/runs/", body)
        self.run_id = answer["id"]
        url = f"{self.url}/api/assignments/{world['assignment']}/labels/polite/"
        self.rater = rater = Rater(url, world["tokens"]["rater"])
        rater.start()
        wait_for(lambda: bool(rater.answered), START_SECONDS, "a saved label")
        wait_for(lambda: self.judged() >= SLOTS, START_SECONDS, "a judged chat")
        return rater

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One call of the API as the lead."""
        headers = {"Authorization": f"Token {self.world['tokens']['lead']}", **FROM_PROXY}
        answer = httpx2.request(method, self.url + path, json=body, headers=headers, timeout=30)
        answer.raise_for_status()
        return answer.json()

    def judged(self) -> int:
        """How many calls the endpoint has answered well."""
        return int(self.server.counts()["answered"])

    def end_run(self) -> str:
        """Let the endpoint be quick, and return the state in which the run ends."""
        self.server.set(latency=QUICK, script=[], rate=0.0)
        state = ""

        def ended() -> bool:
            nonlocal state
            with suppress(httpx2.HTTPError):
                state = self.ask("GET", f"/api/runs/{self.run_id}/")["state"]
            return state not in ("", "running", "planned")

        with suppress(TimeoutError):
            wait_for(ended, END_SECONDS, "the end of the run")
        return state

    def readiness(self) -> dict[str, Any]:
        """What /readyz says to a lead."""
        headers = {"Authorization": f"Token {self.world['tokens']['lead']}"}
        try:
            answer = httpx2.get(f"{self.url}/readyz", headers=headers, timeout=10)
            return {"code": answer.status_code, **answer.json()}
        except (httpx2.HTTPError, ValueError):
            return {"code": 0}


def template(folder: Path, *, chats: int = CHATS) -> dict[str, Any]:
    """Prepare an SQLite file that each site copies; its people and tokens."""
    path = folder / "template.sqlite3"
    world: dict[str, Any] = in_child(
        "_site", "prepare", {"chats": chats}, {"DATABASE_URL": f"sqlite:///{path}"}
    )
    with sqlite3.connect(path) as database:  # one file without its write-ahead log
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return world | {"template": str(path)}


def copy_of(world: Mapping[str, Any], path: Path) -> str:
    """Copy the prepared file; its DATABASE_URL."""
    shutil.copy(world["template"], path)
    return f"sqlite:///{path}"


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> float:
    """Return how long it took; raises TimeoutError."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > seconds:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.1)
    return time.monotonic() - begun
