"""Advances a run through the Batch API, one short step at a time."""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from django.db import OperationalError, connection, transaction
from django.utils import timezone

from evaluation.core.hashing import text_hash
from evaluation.core.types import Reply
from evaluation.gateway.batches import BatchClient, BatchGone, BatchStatus
from evaluation.gateway.budget import budget_check, budget_reached
from evaluation.gateway.throttle import EndpointDown
from evaluation.models.runs import Batch, Run, WorkerLease
from evaluation.runs.worker.batch_replay import wave
from evaluation.runs.worker.batch_rows import PENDING, Collector, attempts_never_asked, batch_file_write
from evaluation.runs.worker.execute import run_settle
from evaluation.runs.worker.leases import LEASE, LeaseLost, lease_beat, lease_begin, lease_end, units_release
from evaluation.runs.worker.plan import plan_load, texts_check
from evaluation.runs.worker.process_units import Plan

STOPPED = "stopped before it was sent"
CANCELLED_HERE = "cancelled from here"
ATTEMPTS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class BatchStep:
    """The state of a run after a step.

    `waiting`: step again after the poll interval; `requests` are at the endpoint. `trouble`: the endpoint
    could not be reached this time; it may pass.
    """

    waiting: bool
    requests: int = 0
    trouble: str = ""


def batch_advance(run: Run) -> BatchStep:
    """Take one step of a batch run: send recorded requests, look at sent ones, collect answers.

    Never waits for an answer and may be interrupted anywhere; the next step, in any process, continues. For a
    stopped run (`batches_stop`) its answers are kept. Only one process steps at a time; others are
    told to wait. The run's state is set as in live mode. Raises InputProblem if the settings do not fit the
    run.
    """
    run.refresh_from_db()
    if run.state == Run.State.RUNNING:  # a stopped run must still cancel what is at the endpoint
        texts_check(run)
    plan = plan_load(run)
    budget_check(budget=plan.budget_usd, models=plan.models, prices=plan.prices)
    lease = _lease(run)
    if lease is None:
        return BatchStep(waiting=True)
    with _beating(lease.pk):
        try:
            with BatchClient(plan.endpoint, timeout=plan.timeout) as client:
                return _Step(run, plan, lease, client).take()
        finally:
            lease_end(lease.pk)


def batches_stop(run: Run) -> None:
    """Mark the run's batches at the endpoint to be cancelled by the next step."""
    run.batches.filter(state__in=PENDING).update(error=CANCELLED_HERE)


def batches_to_stop(*, every: float) -> list[int]:
    """Return stopped runs with batches to cancel that were not looked at for `every` seconds."""
    lately = timezone.now() - timedelta(seconds=every)
    marked = Batch.objects.filter(state__in=PENDING, error=CANCELLED_HERE).exclude(polled_at__gt=lately)
    resting = marked.exclude(run__state=Run.State.RUNNING)
    return sorted(resting.values_list("run_id", flat=True).distinct())


def batch_name(batch: Batch, plan: Plan) -> str:
    """Return our name of a batch at the endpoint: unique to this workspace, the same after a crash."""
    return f"lace-{text_hash(f'{plan.fence_secret.hex()}:{batch.pk}')[:32]}"


@transaction.atomic
def _lease(run: Run) -> WorkerLease | None:
    """Return this process's right to step; None if another process has it."""
    Run.objects.select_for_update().get(pk=run.pk)
    units_release(run)
    # Leases of dead processes have expired, or were found by process id.
    alive = WorkerLease.objects.filter(run=run, expires_at__gt=timezone.now())
    if alive.exists():
        return None
    return lease_begin(run.pk)


@contextmanager
def _beating(lease_id: int) -> Iterator[None]:
    """Keep a lease alive during long uploads, from its own thread."""
    done = threading.Event()

    def beat() -> None:
        try:
            while not done.wait(LEASE.total_seconds() / 4):
                with suppress(LeaseLost, OperationalError):  # the next beat may come through
                    lease_beat(lease_id)
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class _Step:
    """One step, under a lease."""

    def __init__(self, run: Run, plan: Plan, lease: WorkerLease, client: BatchClient) -> None:
        self._run, self._plan, self._lease, self._client = run, plan, lease, client
        self._given_up: dict[str, Reply] = {}
        self._trouble = ""
        self._collected = False

    def take(self) -> BatchStep:
        try:
            if self._run.state == Run.State.RUNNING:
                return self._go_on()
            return self._wind_down()
        except EndpointDown as down:
            self._stopped()
            if down.lasting:
                run_settle(self._run, trouble=str(down))
                return self._now(waiting=False)
            return self._now(waiting=True, trouble=str(down))

    def _go_on(self) -> BatchStep:
        pending = self._pending()
        # An unsent batch is from an interrupted step, which may not have reached all units.
        cut_short = any(batch.state == Batch.State.PREPARED for batch in pending)
        self._push_all(pending)
        if self._trouble:
            run_settle(self._run, trouble=self._trouble)
            return self._now(waiting=False)
        if self._collected or cut_short or not pending:
            files = wave(self._run, self._plan, lease_id=self._lease.pk, given_up=self._given_up)
            self._push_all([batch for batch in self._pending() if batch.state == Batch.State.PREPARED])
            run_settle(self._run, trouble=self._stop_reason(files.over_budget))
        if self._stopped():
            return self._wind_down()
        return self._now(waiting=self._run.state == Run.State.RUNNING)

    def _push_all(self, batches: list[Batch]) -> None:
        for batch in batches:
            if self._stopped():
                return
            self._push(batch)

    def _stopped(self) -> bool:
        """Return whether a user paused or cancelled the run meanwhile; all its batches are marked then."""
        stopped = Run.objects.filter(pk=self._run.pk).exclude(state=Run.State.RUNNING).exists()
        if stopped and self._run.state == Run.State.RUNNING:
            batches_stop(self._run)
        return stopped

    def _stop_reason(self, over_budget: bool) -> str:
        """Return why no request can be sent; pending batches may still free some of the budget."""
        if over_budget and self._run.budget_usd is not None and not self._pending():
            return budget_reached(self._run.budget_usd)
        return ""

    def _wind_down(self) -> BatchStep:
        for batch in self._marked():
            if batch.state != Batch.State.SUBMITTED:
                self._withdraw(batch)
            else:
                self._client.cancel(batch.batch_id)
                self._look(batch)
        if self._collected:
            run_settle(self._run, trouble=self._run.error)
        return self._now(waiting=bool(self._marked()))

    def _withdraw(self, batch: Batch) -> None:
        """Take back a batch that was not created, unless a crash hid that it was."""
        status = self._created(batch)
        if status is not None:
            self._submitted(batch, status)
            return
        while left := list(batch.attempts.filter(ended_at=None)[:ATTEMPTS_AT_ONCE]):
            with transaction.atomic():
                attempts_never_asked(left, STOPPED)
        self._end(batch, Batch.State.FAILED, STOPPED)

    def _push(self, batch: Batch) -> None:
        """Advance a batch as far as possible; anything hidden by a crash is looked up, not repeated."""
        name = batch_name(batch, self._plan)
        if batch.state == Batch.State.PREPARED:
            batch.file_id = self._client.find_file(f"{name}.jsonl", since=batch.created_at)
            if not batch.file_id:
                with tempfile.TemporaryFile() as file:
                    batch_file_write(batch, file, self._plan.profiles)
                    file.seek(0)
                    batch.file_id = self._client.upload(f"{name}.jsonl", file)
            batch.state = Batch.State.UPLOADED
            batch.save(update_fields=["file_id", "state"])
        if batch.state == Batch.State.UPLOADED:
            status = self._created(batch) or self._client.create(batch.file_id, name=name)
            self._submitted(batch, status)
        else:
            self._look(batch)

    def _created(self, batch: Batch) -> BatchStatus | None:
        return self._client.find_batch(name=batch_name(batch, self._plan), since=batch.created_at)

    def _submitted(self, batch: Batch, status: BatchStatus) -> None:
        batch.batch_id, batch.state = status.id, Batch.State.SUBMITTED
        batch.save(update_fields=["batch_id", "state"])

    def _look(self, batch: Batch) -> None:
        """Get the status of a batch, and collect it when it has ended."""
        try:
            status = self._client.look(batch.batch_id)
        except BatchGone:
            status = BatchStatus(batch.batch_id, "completed", error="the endpoint does not know it any more")
        Batch.objects.filter(pk=batch.pk).update(polled_at=timezone.now())
        if status.state == "working":
            return
        collector = Collector(batch, self._plan.prices, self._plan.profiles)
        for file_id in filter(None, (status.output, status.errors)):
            collector.store(self._client.answers(file_id))
        collector.end(complete=status.state == "completed")
        self._collected = True
        self._given_up |= collector.given_up
        self._trouble = self._trouble or collector.trouble or _fault(batch, status, collector.answered)
        failed = status.state == "failed"
        self._end(batch, Batch.State.FAILED if failed else Batch.State.COLLECTED, status.error or batch.error)

    def _end(self, batch: Batch, state: Batch.State, error: str) -> None:
        batch.state, batch.error, batch.finished_at = state, error, timezone.now()
        batch.save(update_fields=["state", "error", "finished_at"])

    def _pending(self) -> list[Batch]:
        return list(self._run.batches.filter(state__in=PENDING).order_by("id"))

    def _marked(self) -> list[Batch]:
        return [batch for batch in self._pending() if batch.error == CANCELLED_HERE]

    def _now(self, *, waiting: bool, trouble: str = "") -> BatchStep:
        return BatchStep(waiting, sum(batch.requests for batch in self._pending()), trouble)


def _fault(batch: Batch, status: BatchStatus, answered: int) -> str:
    """Return why a batch ended, if a user must know before more is sent; "" otherwise."""
    if status.state == "failed":
        return f"{batch.endpoint}: the endpoint rejected the batch ({status.error})"
    if status.state == "cancelled" and not batch.error:
        return f"{batch.endpoint}: the batch was cancelled at the endpoint"
    if status.state == "expired" and not answered:
        return f"{batch.endpoint}: the batch expired before anything was answered"
    return ""
