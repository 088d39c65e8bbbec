"""Heartbeats of worker processes, and what becomes of the units of those that fell silent."""

import os
import socket
import uuid
from datetime import timedelta

from django.utils import timezone

from evaluation.gateway.ledger import attempts_mark_lost
from evaluation.models.runs import Run, Unit, WorkerLease

LEASE = timedelta(seconds=60)


def lease_begin(run_id: int) -> WorkerLease:
    """This process's heartbeat row for its work on a run."""
    now = timezone.now()
    return WorkerLease.objects.create(
        token=uuid.uuid4(),
        run_id=run_id,
        worker=_host(),
        pid=os.getpid(),
        beat_at=now,
        expires_at=now + LEASE,
    )


def _host() -> str:
    return socket.gethostname()[:120]


def lease_beat(lease_id: int) -> None:
    """Say that the process lives; the units it works on stay its own."""
    now = timezone.now()
    WorkerLease.objects.filter(pk=lease_id).update(beat_at=now, expires_at=now + LEASE)


def lease_end(lease_id: int) -> None:
    """Give back what is unfinished, with its requests cut short, and remove the heartbeat."""
    left = Unit.objects.filter(lease_id=lease_id, state=Unit.State.LEASED)
    attempts_mark_lost(unit_ids=list(left.values_list("pk", flat=True)))
    left.update(state=Unit.State.OPEN, lease=None)
    WorkerLease.objects.filter(pk=lease_id).delete()


def units_release(run: Run) -> int:
    """Re-open the run's units whose worker is dead or silent; returns how many."""
    leased = Unit.objects.filter(run=run, state=Unit.State.LEASED).select_related("lease")
    lost = [unit.pk for unit in leased if unit.lease is None or _is_dead(unit.lease)]
    attempts_mark_lost(unit_ids=lost)
    return Unit.objects.filter(pk__in=lost, state=Unit.State.LEASED).update(state=Unit.State.OPEN, lease=None)


def _is_dead(lease: WorkerLease) -> bool:
    """Silent for a whole lease, or a process of this machine that is gone."""
    if lease.expires_at < timezone.now():
        return True
    if lease.worker != _host():
        return False
    # Asked before this process takes a lease: one under its pid is left over from a process before it.
    if lease.pid == os.getpid():
        return True
    try:
        os.kill(lease.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
