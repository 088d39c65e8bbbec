"""What may go wrong around a run, done to real workers; each function says what came of it."""

import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.db import connections
from django.db.models import Count, F
from django.utils import timezone

from bench._endpoint import Server
from bench._workers import Workers
from evaluation.models.runs import Attempt, Run, Unit, Verdict, WorkerLease
from evaluation.runs.worker.time_slices import reap
from evaluation.tasks import process_units

PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Killed:
    """A run whose workers were killed again and again; `seconds` from the last start to its end."""

    kills: int
    state: str
    lost: int
    doubled: int
    repeated: int
    unknown: int
    off_record: int
    seconds: float


def kill_repeatedly(run: Run, workers: Workers, server: Server, *, kills: int) -> Killed:
    """kill -9 the whole group at random moments, evenly over the run; the last one is left to end it."""
    draw = random.Random(kills)
    workers.start()
    for n in range(1, kills + 1):
        wait_for_units(run, n * run.units_total // (kills + 1))
        time.sleep(draw.random() / 2)
        workers.kill()
        if n < kills:
            workers.start()
    last = time.monotonic()
    workers.start()
    wait_for(lambda: state(run) != Run.State.RUNNING, "the end of the run")
    seconds = time.monotonic() - last
    return Killed(kills, state(run), *_losses(run), *_repeats(run, server), seconds)


def _losses(run: Run) -> tuple[int, int]:
    """Verdicts that are missing or not read, and those there are twice."""
    verdicts = Verdict.objects.filter(run=run)
    criteria = run.judge.prompts.count()
    expected = run.run_chats.count() * criteria
    doubled = verdicts.values("chat", "criterion").annotate(n=Count("id")).filter(n__gt=1).count()
    return expected - verdicts.filter(state=Verdict.State.READ).count(), doubled


def _repeats(run: Run, server: Server) -> tuple[int, int, int]:
    """Questions asked again, attempts of unknown outcome, and requests that no attempt tells of."""
    counts, attempts = server.counts(), Attempt.objects.filter(run=run)
    unknown = attempts.filter(outcome=Attempt.Outcome.UNKNOWN).count()
    return counts["repeated"], unknown, max(0, counts["requests"] - attempts.count())


def late_finishers(run: Run, server: Server, *, units: int) -> int:
    """Take the lease away while `units` are in work, let them finish, and count what they have written."""
    # In a thread: the turn belongs to this very process, so that no reaper takes it for dead.
    turn = threading.Thread(target=_turn, args=(run.pk,))
    turn.start()
    wait_for(lambda: server.counts()["most_in_flight"] >= units, f"{units} calls in flight")
    WorkerLease.objects.filter(run=run).update(expires_at=timezone.now())
    time.sleep(0.01)
    if (freed := reap().reopened) < units:
        raise RuntimeError(f"only {freed} units were taken back")
    turn.join(PATIENCE)
    written = Unit.objects.filter(run=run).exclude(state=Unit.State.OPEN).count()
    return written + Verdict.objects.filter(run=run).count()


def _turn(run_id: int) -> None:
    try:
        process_units(run_id)
    finally:
        connections.close_all()


def die_on(run: Run, unit: Unit, *, until: Callable[[], bool]) -> int:
    """Kill the process that works on a unit whenever its request is on its way; returns how often."""
    deaths, deadline = set(), time.monotonic() + PATIENCE
    open_attempts = Attempt.objects.filter(unit=unit, ended_at=None, unit__lease__isnull=False)
    while not until():
        for pid in open_attempts.values_list("unit__lease__pid", flat=True):
            if pid not in deaths:
                os.kill(pid, 9)
                deaths.add(pid)
        if time.monotonic() > deadline:
            raise RuntimeError("waited in vain for the unit to be parked")
        time.sleep(0.02)
    return len(deaths)


def wait_for_units(run: Run, count: int) -> None:
    """Wait until so many units are done or failed."""
    wait_for(lambda: finished(run) >= count, f"{count} units")


def finished(run: Run) -> int:
    """Units done or failed."""
    done = Run.objects.filter(pk=run.pk).annotate(n=F("units_done") + F("units_failed"))
    return int(done.values_list("n", flat=True).get())


def state(run: Run) -> str:
    """The run's state now."""
    return str(Run.objects.values_list("state", flat=True).get(pk=run.pk))


def wait_for(condition: Callable[[], bool], what: str, *, seconds: float = PATIENCE) -> float:
    """Wait, at most so long, and say how long it was."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > seconds:
            raise RuntimeError(f"waited in vain for {what}")
        time.sleep(0.05)
    return time.monotonic() - begun
