"""A worker's turn on a run, as long as one ring of the doorbell lasts, and who is rung next."""

import logging
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from common.problems import InputProblem
from evaluation.models.runs import ON_WORKER, Run, Unit, WorkerLease
from evaluation.runs.worker.batch import batch_advance
from evaluation.runs.worker.execute import run_execute, run_settle
from evaluation.runs.worker.leases import leases_release

log = logging.getLogger(__name__)

# A turn takes no new unit after so many seconds; what is in work may end.
TURN_SECONDS = 45.0
# How long to wait where the endpoint does not answer and this may pass.
WAIT_SECONDS = 10.0
# A ring that nobody has answered for so long may be lost.
RING_AGAIN = timedelta(seconds=30)
STOPPED = "the process that worked on it ended; resume it to go on"


@dataclass(frozen=True, slots=True)
class Next:
    """Whether a run wants another turn, and after how many seconds."""

    again: bool
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Reaped:
    """What the reaper found: units open again, runs settled, and the runs nobody works on or was rung for.

    `quiet` runs were rung for a while ago; that ring may be lost, or still in the queue.
    """

    reopened: int
    settled: int
    unrung: tuple[int, ...]
    quiet: tuple[int, ...]


def ring_stamp(run_id: int, *, seen: datetime | None, at: datetime) -> bool:
    """Note that a run is rung for; False when somebody else was quicker, or it is not running."""
    runs = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, rung_at=seen)
    return runs.update(rung_at=at) == 1


def ring_answered(run_id: int, ring: datetime | None) -> bool:
    """Take the ring that was noted on the run; an older one, or one for a run that rests, is ignored.

    So there is one ring a run in the queue that counts, however often somebody rang.
    """
    runs = Run.objects.filter(pk=run_id, state=Run.State.RUNNING)
    runs = runs.filter(rung_at=ring) if ring else runs
    return runs.update(rung_at=None) == 1


def wants_helper(run_id: int, *, more_than: int) -> bool:
    """Whether the run has more open units than one process holds at once."""
    open_units = Unit.objects.filter(run_id=run_id, run__mode=Run.Mode.LIVE, state=Unit.State.OPEN)
    return open_units[more_than : more_than + 1].exists()


def run_turn(run_id: int, *, leave: threading.Event | None = None) -> Next:
    """Work on a run for one turn, or until `leave`. One that these settings cannot work on is paused."""
    run = Run.objects.select_related("judge").get(pk=run_id)
    try:
        if run.mode == Run.Mode.BATCH:
            return _batch_turn(run)
        run = run_execute(run, on_unit=lambda failed: None, seconds=TURN_SECONDS, leave=leave, waits=True)
    except InputProblem as problem:
        log.warning("run %s cannot go on: %s", run_id, problem)
        run_settle(run, trouble=" ".join(str(problem).split()))
    return next_turn(run)


def _batch_turn(run: Run) -> Next:
    """One step of a batch run; the next one after the poll interval."""
    step = batch_advance(run)
    if step.waiting and step.trouble != run.error:
        run_settle(run, trouble=step.trouble, waits=True)
    return Next(again=step.waiting, wait=float(settings.LACE_BATCH_POLL_SECONDS))


def wind_down(run_id: int) -> None:
    """Take one step at what a run that somebody stopped still has at the endpoint's Batch API."""
    run = Run.objects.select_related("judge").get(pk=run_id)
    try:
        step = batch_advance(run)
    except InputProblem as problem:
        log.warning("the batches of run %s cannot be cancelled: %s", run_id, problem)
        return
    if step.trouble:
        log.warning("the batches of run %s cannot be cancelled yet: %s", run_id, step.trouble)


def next_turn(run: Run) -> Next:
    """What a run wants after a turn."""
    is_open = run.units.filter(state=Unit.State.OPEN)
    if run.state != Run.State.RUNNING or not is_open.exists():
        return Next(again=False)
    return Next(again=True, wait=WAIT_SECONDS if run.error else 0.0)


def reap() -> Reaped:
    """Take back what dead workers held, end what is finished, and say which runs to ring for.

    May run twice at once: whoever comes second finds nothing. Its queries do not grow with units or runs,
    apart from those of the runs that it settles.
    """
    released = leases_release(WorkerLease.objects.all())
    running = Run.objects.filter(state=Run.State.RUNNING).exclude(purpose=Run.Purpose.IMPORT)
    units = Unit.objects.filter(run=OuterRef("pk"))
    left = Exists(units.filter(state=Unit.State.OPEN)) | Exists(units.filter(state=Unit.State.LEASED))
    finished = list(running.exclude(left).select_related("judge"))
    for run in finished:
        run_settle(run, trouble="")
    alive = WorkerLease.objects.filter(run=OuterRef("pk"), expires_at__gte=timezone.now())
    idle = running.filter(Exists(units.filter(state=Unit.State.OPEN)), ~Exists(alive))
    ours = idle.filter(**{f"options__{ON_WORKER}": True})
    idle.filter(pk__in=released.runs).exclude(pk__in=ours.values("pk")).update(
        state=Run.State.PAUSED, error=STOPPED
    )
    old = ours.filter(rung_at__lt=timezone.now() - RING_AGAIN).order_by("rung_at")
    return Reaped(
        reopened=released.units,
        settled=len(finished),
        unrung=tuple(ours.filter(rung_at=None).order_by("pk").values_list("pk", flat=True)),
        quiet=tuple(old.values_list("pk", flat=True)),
    )
