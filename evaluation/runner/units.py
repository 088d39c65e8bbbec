"""Units of a run in the database: taken under a lease, finished by compare-and-set."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection
from django.db.models import F, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from evaluation.core.types import Chat, GroupResult, Message
from evaluation.gateway.ledger import CallUsed
from evaluation.models.runs import ModelCall, Run, Unit, UnitCall, Verdict
from labeling.models.chats import Chat as ChatRow

LARGEST_SMALL_COUNT = 2**15 - 1  # what PostgreSQL's smallint holds


@dataclass(frozen=True, slots=True)
class Work:
    """A leased unit, ready for an engine."""

    unit_id: int
    chat_id: int
    chat: Chat
    group: int


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
            quotes=min(verdict.quotes, LARGEST_SMALL_COUNT),
            quotes_verified=min(verdict.quotes_verified, LARGEST_SMALL_COUNT),
            first_brief=verdict.first_brief,
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
