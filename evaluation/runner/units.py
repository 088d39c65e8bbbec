"""Units of a run in the database: taken under a lease, finished by compare-and-set."""

import os
import socket
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.db.models import F, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from evaluation.core.types import Chat, GroupResult, Message
from evaluation.gateway.ledger import CallUsed, attempts_mark_lost
from evaluation.models.runs import ModelCall, Run, Unit, UnitCall, Verdict, WorkerLease
from labeling.models.chats import Chat as ChatRow

LEASE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Work:
    """A leased unit, ready for an engine."""

    unit_id: int
    chat_id: int
    chat: Chat
    group: int


def lease_begin() -> WorkerLease:
    """This process's heartbeat row."""
    now = timezone.now()
    return WorkerLease.objects.create(
        token=uuid.uuid4(),
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


def units_take(*, run_id: int, lease_id: int, limit: int) -> list[Work]:
    """Lease up to `limit` open units, in plan order."""
    rows = Unit.objects.filter(run_id=run_id, state=Unit.State.OPEN).order_by("id")
    if connection.features.has_select_for_update_skip_locked:
        rows = rows.select_for_update(skip_locked=True)
    units = list(rows[:limit])
    taken = [unit.pk for unit in units]
    Unit.objects.filter(pk__in=taken).update(state=Unit.State.LEASED, lease_id=lease_id, tries=F("tries") + 1)
    chats = ChatRow.objects.in_bulk({unit.chat_id for unit in units})
    return [Work(unit.pk, unit.chat_id, core_chat(chats[unit.chat_id]), unit.group) for unit in units]


def core_chat(row: ChatRow) -> Chat:
    """The engine's view of a stored chat."""
    return Chat(row.content_hash, tuple(Message(m["n"], m["role"], m["content"]) for m in row.messages))


def unit_finish(
    *, run_id: int, lease_id: int, work: Work, result: GroupResult, criterion_ids: dict[str, int]
) -> bool:
    """Save verdicts, calls and the unit's end together; False, and nothing saved, if the lease was lost."""
    failed = [verdict for verdict in result.verdicts if verdict.state == "failed"]
    finished = Unit.objects.filter(pk=work.unit_id, lease_id=lease_id, state=Unit.State.LEASED).update(
        state=Unit.State.FAILED if failed else Unit.State.DONE,
        lease=None,
        error=(failed[0].explanation if failed else "")[:200],
        finished_at=timezone.now(),
    )
    if not finished:
        return False
    uses = list(_used(result))
    UnitCall.objects.filter(unit_id=work.unit_id).delete()
    UnitCall.objects.bulk_create(
        UnitCall(unit_id=work.unit_id, call_id=used.call_id, role=role, step=step, reused=used.reused)
        for role, step, used in uses
    )
    Verdict.objects.bulk_create(_verdicts(run_id, work, result, criterion_ids))
    _count(run_id, uses, failed=bool(failed))
    return True


def _used(result: GroupResult) -> Iterable[tuple[str, int, CallUsed]]:
    for use in result.calls:
        if isinstance(use.call, CallUsed):
            yield use.role, use.step, use.call


def _verdicts(run_id: int, work: Work, result: GroupResult, criterion_ids: dict[str, int]) -> list[Verdict]:
    now = timezone.now()
    return [
        Verdict(
            run_id=run_id,
            chat_id=work.chat_id,
            criterion_id=criterion_ids[verdict.criterion],
            unit_id=work.unit_id,
            state=verdict.state,
            value=verdict.value,
            first_state=verdict.first_state or "",
            first_value=verdict.first_value,
            explanation=verdict.explanation,
            read_by=verdict.read_by,
            contradicts=verdict.contradicts,
            sided_with=verdict.sided_with,
            flags=list(verdict.flags),
            stored_at=now,
        )
        for verdict in result.verdicts
    ]


def _count(run_id: int, uses: list[tuple[str, int, CallUsed]], *, failed: bool) -> None:
    """Add one finished unit to the run's counters; only what this run paid for counts as tokens and cost."""
    asked = [used.call_id for _, _, used in uses if not used.reused]
    tokens = ModelCall.objects.filter(pk__in=asked).aggregate(
        prompt=Coalesce(Sum("prompt_tokens"), 0),
        cached=Coalesce(Sum("cached_tokens"), 0),
        completion=Coalesce(Sum("completion_tokens"), 0),
    )
    Run.objects.filter(pk=run_id).update(
        units_done=F("units_done") + (0 if failed else 1),
        units_failed=F("units_failed") + (1 if failed else 0),
        calls=F("calls") + len(asked),
        reused=F("reused") + len(uses) - len(asked),
        prompt_tokens=F("prompt_tokens") + tokens["prompt"],
        cached_tokens=F("cached_tokens") + tokens["cached"],
        completion_tokens=F("completion_tokens") + tokens["completion"],
    )
