"""A worker's time slice on a run, and which runs need the next one."""

import logging
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from common.problems import InputProblem
from evaluation.models.runs import ON_WORKER, Run, Unit, WorkerLease
from evaluation.runs.queries.redact_errors import kind_alone
from evaluation.runs.worker.batch import batch_advance
from evaluation.runs.worker.execute import run_execute, run_settle, tell_paused
from evaluation.runs.worker.leases import leases_release

log = logging.getLogger(__name__)

# A time slice starts no unit after this many seconds; units in work may end.
TURN_SECONDS = 45.0
# How long to wait if the endpoint does not answer for the moment.
WAIT_SECONDS = 10.0
# A task that no worker claimed for this long may be lost.
RING_AGAIN = timedelta(seconds=30)
STOPPED = "the process that ran it ended; resume to continue"


@dataclass(frozen=True, slots=True)
class NextSlice:
    """Whether a run needs another time slice, and after how many seconds."""

    again: bool
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class ReapResult:
    """The reaper's result: units reopened, runs settled, and runs without a worker or a task.

    `quiet` runs were enqueued a while ago; their task may be lost, or still in the queue.
    """

    reopened: int
    settled: int
    unrung: tuple[int, ...]
    quiet: tuple[int, ...]


def enqueue_stamp(run_id: int, *, seen: datetime | None, at: datetime) -> bool:
    """Record that a run is enqueued; False if another process was faster, or the run is not running."""
    runs = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, rung_at=seen)
    return runs.update(rung_at=at) == 1


def enqueue_answered(run_id: int, ring: datetime | None) -> bool:
    """Claim the task recorded on the run; an older task, or one for a run at rest, is ignored.

    Only one task per run counts.
    """
    runs = Run.objects.filter(pk=run_id, state=Run.State.RUNNING)
    runs = runs.filter(rung_at=ring) if ring else runs
    return runs.update(rung_at=None) == 1


def wants_helper(run_id: int, *, more_than: int) -> bool:
    """Return whether the run has more open units than one process can hold."""
    open_units = Unit.objects.filter(run_id=run_id, run__mode=Run.Mode.LIVE, state=Unit.State.OPEN)
    return open_units[more_than : more_than + 1].exists()


def run_time_slice(run_id: int, *, leave: threading.Event | None = None) -> NextSlice:
    """Work on a run for one time slice, or until `leave`. A run that does not fit the settings is paused."""
    run = Run.objects.select_related("judge").get(pk=run_id)
    try:
        if run.mode == Run.Mode.BATCH:
            return _batch_turn(run)
        run = run_execute(run, on_unit=lambda failed: None, seconds=TURN_SECONDS, leave=leave, waits=True)
    except InputProblem as problem:
        log.warning("run %s cannot go on: %s", run_id, problem)
        run_settle(run, trouble=" ".join(str(problem).split()))
    return next_time_slice(run)


def _batch_turn(run: Run) -> NextSlice:
    """Take one step of a batch run; the next one follows after the poll interval."""
    step = batch_advance(run)
    if step.waiting and step.trouble != run.error:
        run_settle(run, trouble=step.trouble, waits=True)
    return NextSlice(again=step.waiting, wait=float(settings.LACE_BATCH_POLL_SECONDS))


def wind_down(run_id: int) -> None:
    """Take one step to cancel what a stopped run still has at the Batch API."""
    run = Run.objects.select_related("judge").get(pk=run_id)
    try:
        step = batch_advance(run)
    except InputProblem as problem:
        log.warning("the batches of run %s cannot be cancelled: %s", run_id, problem)
        return
    if step.trouble:
        log.warning("the batches of run %s cannot be cancelled yet: %s", run_id, kind_alone(step.trouble))


def next_time_slice(run: Run) -> NextSlice:
    """Return whether a run needs another time slice."""
    is_open = run.units.filter(state=Unit.State.OPEN)
    if run.state != Run.State.RUNNING or not is_open.exists():
        return NextSlice(again=False)
    return NextSlice(again=True, wait=WAIT_SECONDS if run.error else 0.0)


def reap() -> ReapResult:
    """Take back units of dead workers, settle finished runs, and return which runs to enqueue.

    Concurrent calls are safe. The number of queries does not grow with units or runs, apart from settled
    runs.
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
    stopped = idle.filter(pk__in=released.runs).exclude(pk__in=ours.values("pk"))
    tell_paused(stopped.select_related("started_by"))
    stopped.update(state=Run.State.PAUSED, error=STOPPED)
    old = ours.filter(rung_at__lt=timezone.now() - RING_AGAIN).order_by("rung_at")
    return ReapResult(
        reopened=released.units,
        settled=len(finished),
        unrung=tuple(ours.filter(rung_at=None).order_by("pk").values_list("pk", flat=True)),
        quiet=tuple(old.values_list("pk", flat=True)),
    )
