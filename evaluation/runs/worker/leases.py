"""Heartbeats of worker processes, and the units of processes that stopped."""

import contextlib
import os
import socket
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from pathlib import Path

from django.db import transaction
from django.db.models import Case, F, Min, QuerySet, When
from django.db.models.functions import Least
from django.utils import timezone

from evaluation.call_counts.services import leases_lost_add
from evaluation.day_counts.services import DayCounter
from evaluation.gateway.ledger import attempts_mark_lost
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, Unit, Verdict, WorkerLease
from evaluation.outbox.services import StoredVerdicts, stored_verdict, verdicts_publish

LEASE = timedelta(seconds=60)
# A unit whose worker died this often fails.
MOST_TRIES = 3
POISON = f"the worker process died {MOST_TRIES} times on this chat"


class LeaseLost(Exception):
    """This process missed its heartbeats: its units belong to other processes now."""


@dataclass(frozen=True, slots=True)
class Release:
    """The number of reopened units, and the runs whose workers were dead."""

    units: int = 0
    runs: tuple[int, ...] = ()


def lease_begin(run_id: int | None) -> WorkerLease:
    """Create this process's heartbeat row for a run, or for a question without a run."""
    now = timezone.now()
    return WorkerLease.objects.create(
        token=uuid.uuid4(),
        run_id=run_id,
        worker=machine(),
        pid=os.getpid(),
        beat_at=now,
        expires_at=now + LEASE,
    )


@cache
def machine() -> str:
    """Return where process ids are unique: host, boot and process namespace (containers may share a host)."""
    parts = [socket.gethostname()[:60]]
    with contextlib.suppress(OSError):  # not on Linux: the host name alone
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8])
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)[:120]


def lease_beat(lease_id: int) -> None:
    """Renew the lease, so that the process keeps its units. Raises LeaseLost."""
    now = timezone.now()
    if not WorkerLease.objects.filter(pk=lease_id).update(beat_at=now, expires_at=now + LEASE):
        raise LeaseLost(f"lease {lease_id} ran out and was taken back")


def lease_end(lease_id: int, *, crashed: bool = False) -> None:
    """Return unfinished units, mark their requests as lost, and delete the heartbeat.

    An orderly return is not a failed try; after a crash it is.
    """
    if crashed:
        leases_release(WorkerLease.objects.filter(pk=lease_id), own=True)
        return
    left = Unit.objects.filter(lease_id=lease_id, state=Unit.State.LEASED)
    attempts_mark_lost(unit_ids=list(left.values_list("pk", flat=True)))
    fewer = Case(When(tries__gt=0, then=F("tries") - 1), default=0)
    left.update(state=Unit.State.OPEN, lease=None, tries=fewer)
    WorkerLease.objects.filter(pk=lease_id).delete()


def units_release(run: Run) -> int:
    """Reopen the run's units whose worker is dead; return their number.

    Call it before this process takes a lease: a lease with its own process id is from an earlier process.
    """
    return leases_release(WorkerLease.objects.filter(run=run), own=True, run=run).units


def leases_release(leases: QuerySet[WorkerLease], *, own: bool = False, run: Run | None = None) -> Release:
    """Take back the units of dead leases and delete these leases.

    A unit that killed its worker MOST_TRIES times fails instead. Concurrent callers share the leases.
    """
    stray = Unit.objects.filter(state=Unit.State.LEASED, lease=None)
    stray = stray.filter(run=run) if run else stray
    dead = [lease.pk for lease in leases if is_dead(lease, own=own)]
    if not dead and not stray.exists():
        return Release()
    with transaction.atomic():
        # Checked again under the lock: a slow worker may have sent a heartbeat meanwhile.
        locked = WorkerLease.objects.select_for_update(skip_locked=True).filter(pk__in=dead)
        dead_now = [lease for lease in locked if is_dead(lease, own=own)]
        gone = [lease.pk for lease in dead_now]
        lost = Unit.objects.filter(state=Unit.State.LEASED, lease__in=gone)
        _park(lost)
        freed = [*lost.values_list("pk", flat=True), *stray.values_list("pk", flat=True)]
        attempts_mark_lost(unit_ids=freed)
        reopened = Unit.objects.filter(pk__in=freed, state=Unit.State.LEASED).update(
            state=Unit.State.OPEN, lease=None, tries=Least(F("tries"), MOST_TRIES - 1)
        )
        WorkerLease.objects.filter(pk__in=gone).delete()
        if gone:
            leases_lost_add(len(gone))
    return Release(reopened, tuple({lease.run_id for lease in dead_now if lease.run_id}))


def is_dead(lease: WorkerLease, *, own: bool = False) -> bool:
    """Return whether a lease expired or its process here ended; `own` counts this process as dead."""
    if lease.expires_at < timezone.now():
        return True
    if lease.worker != machine():
        return False
    if lease.pid == os.getpid():
        return own
    try:
        os.kill(lease.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def has_suspects(run_id: int) -> bool:
    """Return whether open units of the run were in work when a worker died.

    They are tried one at a time, so that the next death has one cause.
    """
    return Unit.objects.filter(run_id=run_id, state=Unit.State.OPEN, tries__gte=MOST_TRIES - 1).exists()


def _park(lost: QuerySet[Unit]) -> None:
    """Fail the unit that each dead worker was on if it has no tries left; the others wait."""
    first = lost.values("lease").annotate(first=Min("id")).values_list("first", flat=True).order_by()
    culprits = lost.filter(pk__in=list(first), tries__gte=MOST_TRIES).select_related("run")
    for unit in culprits:
        attempts_mark_lost(unit_ids=[unit.pk])
        unit_fail(unit, POISON)


def unit_fail(unit: Unit, why: str) -> None:
    """End a leased unit as failed, with a failed verdict on each of its criteria."""
    now = timezone.now()
    leased = Unit.objects.filter(pk=unit.pk, state=Unit.State.LEASED, lease_id=unit.lease_id)
    if not leased.update(state=Unit.State.FAILED, lease=None, error=why[:200], finished_at=now):
        return
    criteria = dict(_criteria(unit))
    Verdict.objects.bulk_create(
        Verdict(
            run_id=unit.run_id,
            chat_id=unit.chat_id,
            criterion_id=criterion_id,
            unit_id=unit.pk,
            state=Verdict.State.FAILED,
            explanation=why,
            stored_at=now,
        )
        for criterion_id in criteria
    )
    failed = partial(stored_verdict, state=Verdict.State.FAILED, value=None, p_true=None)
    verdicts_publish([StoredVerdicts(unit.run_id, unit.chat_id, tuple(map(failed, criteria.values())))])
    Run.objects.filter(pk=unit.run_id).update(units_failed=F("units_failed") + 1)
    DayCounter(unit.run_id).add([unit.pk])


def _criteria(unit: Unit) -> Iterable[tuple[int, str]]:
    prompts = JudgePrompt.objects.filter(judge=unit.run.judge_id, group=unit.group)
    return prompts.values_list("criterion_id", "criterion__key")
