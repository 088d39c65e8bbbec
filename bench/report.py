"""The alignment report over a million label-verdict pairs: arithmetic, first computation, pages, command.

NB: 20 criteria × 50,000 chats are written straight into the tables, a minute of processor time a database.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from statistics import quantiles
from typing import Any

import numpy as np
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.comparison.core.codes import CriterionData, CriterionSpec, ReportData
from alignment.comparison.queries.scope import Scope
from alignment.reports.core import build_report
from alignment.reports.core.status import StatusPolicy
from alignment.reports.queries.reports import alignment_report
from bench import Figure, Time, peak_mb, time_figures, timed
from bench._child import in_child
from bench._pairs import filled_workspace
from evaluation.models.runs import Run
from labeling.models.people import Role
from tests.factories.rows import make_user
from tests.with_postgres import postgres

CHATS, CRITERIA = 50_000, 20
PAIRS = f"{CHATS * CRITERIA:,} pairs"
ARITHMETIC_SECONDS = 1.0  # what 2,000 clustered resamples of as many rows may take
FIRST_SECONDS, FIRST_MB = 10.0, 1000.0
AGAIN_SECONDS = 3.0
PAGE_SECONDS, QUERIES = 0.3, 30
GETS = 40  # among which one pause of the garbage collector does not make a p95
MANAGE = Path(__file__).resolve().parent.parent / "manage.py"


def figures() -> Iterator[Figure]:
    """The arithmetic at its best of five; then on each database the report: computed, and read back."""
    data = random_pairs()
    tries = [timed(lambda: build_report(data, policy=StatusPolicy(), seed=1)) for _ in range(5)]
    best = Time(min(one.wall for one in tries), min(one.cpu for one in tries))
    yield from time_figures(f"report arithmetic over {PAIRS}", best, limit=ARITHMETIC_SECONDS)
    yield from report_figures("SQLite", {})
    with postgres() as url:
        yield from report_figures("PostgreSQL", {"DATABASE_URL": url})


def report_figures(database: str, environment: dict[str, str]) -> Iterator[Figure]:
    """On a new database."""
    run = in_child("report", "filled", {}, environment)
    for split in ("", "dev"):
        part = f" of {split}" if split else ""
        first = in_child("report", "computed", {"run": run, "split": split}, environment)
        name = f"{database}, report{part} over {PAIRS}, first"
        yield from time_figures(name, Time(first["wall"], first["cpu"]), limit=FIRST_SECONDS)
        yield Figure(f"{name}, memory", first["mb"], FIRST_MB, "MB")
        again = timed_command(run, split, environment)
        yield Figure(f"{database}, alignment_report{part} again, clock", again, AGAIN_SECONDS, "s")
    for role in (Role.LEAD, Role.AUTHOR):
        page = opened_page(address("report_run", run), role, environment)
        name = f"{database}, report page, {role.value}"
        yield from time_figures(f"{name}, p95", Time(*page["p95"]), limit=PAGE_SECONDS)
        yield Figure(f"{name}, queries", page["queries"], QUERIES, "")
    for name, url in (
        ("criterion page", address("criterion_report", run, "c0")),
        ("disagreements", address("disagreements", run)),
        ("league", address("league", 1)),  # of the only set
    ):
        page = opened_page(url, Role.LEAD, environment)
        yield from time_figures(f"{database}, {name}, first", Time(*page["first"]), limit=FIRST_SECONDS)
        yield from time_figures(f"{database}, {name}, p95", Time(*page["p95"]), limit=PAGE_SECONDS)


def address(page: str, *args: str | int) -> str:
    """A page's path."""
    return reverse(f"alignment:{page}", args=args)


def opened_page(url: str, role: Role, environment: dict[str, str]) -> dict[str, Any]:
    """What `opened` found in a process of its own."""
    found: dict[str, Any] = in_child("report", "opened", {"url": url, "role": role.value}, environment)
    return found


def timed_command(run: int, split: str, environment: dict[str, str]) -> float:
    """Seconds on the clock of `alignment_report --json`, start of the process included."""
    command = [sys.executable, str(MANAGE), "alignment_report", "--run", str(run), "--json"]
    command += ["--split", split] if split else []

    def call() -> None:
        ended = subprocess.run(command, env=os.environ | environment, capture_output=True, check=True)
        assert json.loads(ended.stdout)["run"] == run

    return timed(call).wall


def random_pairs() -> ReportData:
    """Three labels a chat and criterion, and a judge that is right nine times in ten."""
    draw = np.random.default_rng(1)
    criteria = []
    for n in range(CRITERIA):
        human = (draw.random(CHATS) < 0.2).astype(np.int8)
        judge = np.where(draw.random(CHATS) < 0.9, human, 1 - human).astype(np.int8)
        false = draw.binomial(1, 0.1, CHATS) + human
        counts = np.column_stack([3 - false, false, np.zeros_like(false)]).astype(np.int32)
        spec = CriterionSpec(f"c{n}", f"d{n % 5}", f"D{n % 5}", "simple", True)
        criteria.append(CriterionData(spec, human, judge, counts, 3))
    return ReportData([f"chat {n}" for n in range(CHATS)], tuple(criteria))


# ---------- in a process of their own ----------


def filled() -> int:
    """The id of a run with all the verdicts; reflecting judges take the longest to report on."""
    run = filled_workspace(chats=CHATS, criteria=CRITERIA)[0]
    make_user(Role.LEAD.value, Role.LEAD)
    make_user(Role.AUTHOR.value, Role.AUTHOR)
    return run.pk


def computed(run: int, split: str) -> dict[str, float]:
    """Seconds of a report that nobody has asked for yet, and the peak memory of this process."""
    row = Run.objects.select_related("judge", "chat_set").get(pk=run)
    spent = timed(lambda: alignment_report(Scope(row.chat_set, row, split)))
    return {"wall": spent.wall, "cpu": spent.cpu, "mb": peak_mb()}


def opened(url: str, role: str) -> dict[str, Any]:
    """(clock, CPU) seconds of a page opened for the first time, p95 of both afterwards, and its queries."""
    client = Client(SERVER_NAME="localhost")
    client.login(username=role, password="correct horse battery")  # noqa: S106  the factory's
    first = timed(lambda: open_page(client, url))
    with CaptureQueriesContext(connection) as queries:
        open_page(client, url)
        asked = len(queries)
    spent = [timed(lambda: open_page(client, url)) for _ in range(GETS)]
    p95 = [quantiles(times, n=20)[-1] for times in zip(*((t.wall, t.cpu) for t in spent), strict=True)]
    return {"first": (first.wall, first.cpu), "p95": p95, "queries": asked}


def open_page(client: Client, url: str) -> None:
    """One GET; anything but a page is a fault."""
    status = client.get(url).status_code
    if status != HTTPStatus.OK:
        raise RuntimeError(f"{url} answered {status}")
