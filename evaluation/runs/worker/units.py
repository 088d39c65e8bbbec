"""Units of a run in the database: leased, and finished by compare-and-set, many at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import F
from django.utils import timezone

from evaluation.core.types import Article, Chat, GroupResult, VerdictResult
from evaluation.day_counts.services import DayCounter
from evaluation.gateway.ledger import CallUsed
from evaluation.gateway.rows import Row, rows_add, rows_insert, rows_update
from evaluation.models.prompts import ArticleVersion
from evaluation.models.runs import Passage, Run, Unit, UnitCall, Verdict, WorkerLease
from evaluation.outbox.services import StoredVerdicts, stored_verdict, verdicts_publish
from evaluation.runs.queries.chats import core_chat
from labeling.models.chats import Chat as ChatRow

LARGEST_SMALL_COUNT = 2**15 - 1  # PostgreSQL's smallint limit

_UNIT_CALL = ("unit", "call", "role", "step", "window", "sample", "reused")
_COUNTED = ("prompt_tokens", "cached_tokens", "completion_tokens", "prompt_chars", "repeated_chars")
_VERDICT = (
    *("run", "chat", "unit", "criterion", "state", "value", "first_state", "first_value", "p_true"),
    *("explanation", "rationale", "read_by", "contradicts", "sided_with"),
    *("votes_true", "votes_false", "votes_na", "quotes", "quotes_verified", "quotes_close"),
    "first_brief",
    *("flags", "stored_at"),
)


@dataclass(frozen=True, slots=True)
class Work:
    """A leased unit, ready for an engine."""

    unit_id: int
    chat_id: int
    chat: Chat
    group: int


@dataclass(frozen=True, slots=True)
class JudgedUnit:
    """A judged unit, and its lease."""

    run_id: int
    lease_id: int
    work: Work
    result: GroupResult

    @property
    def error(self) -> str:
        """Return why it failed, "" if it did not."""
        failed = (verdict for verdict in self.result.verdicts if verdict.state == "failed")
        return next((verdict.explanation or "failed" for verdict in failed), "")


def units_take(*, run_id: int, lease_id: int, limit: int, least_tries: int = 0) -> list[Work]:
    """Lease up to `limit` open units, in plan order; none if the run was paused or cancelled.

    With `least_tries`, only units that were taken at least that often. None if the lease was taken back
    because this process missed its heartbeats.
    """
    if not WorkerLease.objects.select_for_update(no_key=True).filter(pk=lease_id).exists():
        return []
    rows = Unit.objects.filter(run_id=run_id, run__state=Run.State.RUNNING, state=Unit.State.OPEN)
    if connection.features.has_select_for_update_skip_locked:
        rows = rows.select_for_update(skip_locked=True, of=("self",))
    rows = rows.filter(tries__gte=least_tries) if least_tries else rows
    units = list(rows.only("chat_id", "group").order_by("id")[:limit])
    taken = [unit.pk for unit in units]
    Unit.objects.filter(pk__in=taken).update(state=Unit.State.LEASED, lease_id=lease_id, tries=F("tries") + 1)
    chats = ChatRow.objects.only("content_hash", "messages").in_bulk({unit.chat_id for unit in units})
    ready = {pk: core_chat(row) for pk, row in chats.items()}
    return [Work(unit.pk, unit.chat_id, ready[unit.chat_id], unit.group) for unit in units]


class UnitWriter:
    """Bulk functions of the database thread that save judged units; `criterion_ids` by criterion key."""

    def __init__(self, criterion_ids: dict[str, int]) -> None:
        self._criterion_ids = criterion_ids
        self._counters: dict[int, DayCounter] = {}

    def finish(self, finished: Sequence[JudgedUnit]) -> list[bool]:
        """Save verdicts, calls and units together; False, with nothing saved, where a lease was lost."""
        tries = _still_leased(finished)
        done = [one for one in finished if one.work.unit_id in tries]
        if done:
            _close(done)
            _delete_earlier_try([pk for pk, count in tries.items() if count > 1])
            rows_insert(UnitCall, _UNIT_CALL, [row for one in done for row in _unit_calls(one)])
            rows_insert(Verdict, _VERDICT, self._verdicts(done))
            verdicts_publish(map(_stored, done))
            self._store_passages(done)
            for run_id in {one.run_id for one in done}:
                own = [one for one in done if one.run_id == run_id]
                _count(run_id, own)  # locks the run: its counts by day have one writer at a time
                counter = self._counters.setdefault(run_id, DayCounter(run_id))
                counter.add([one.work.unit_id for one in own])
        return [one.work.unit_id in tries for one in finished]

    def _verdicts(self, done: Sequence[JudgedUnit]) -> list[Row]:
        now = timezone.now()
        return [
            (
                *(one.run_id, one.work.chat_id, one.work.unit_id, self._criterion_ids[verdict.criterion]),
                *_verdict(verdict),
                now,
            )
            for one in done
            for verdict in one.result.verdicts
        ]

    def _store_passages(self, done: Sequence[JudgedUnit]) -> None:
        passages_by_unit = [
            (one.work.unit_id, self._criterion_ids[key], passage)
            for one in done
            for key, passages in one.result.passages.items()
            for passage in passages
        ]
        if passages_by_unit:
            versions = _version_ids({passage.article for _, _, passage in passages_by_unit})
            Passage.objects.bulk_create(
                Passage(
                    unit_id=unit_id,
                    criterion_id=criterion_id,
                    article_version_id=versions[passage.article.key, passage.article.version],
                    rank=passage.rank,
                    start=passage.start,
                    end=passage.end,
                    score=passage.score,
                )
                for unit_id, criterion_id, passage in passages_by_unit
            )


def _still_leased(finished: Sequence[JudgedUnit]) -> dict[int, int]:
    """Return the tries, by id, of the units that are still leased to their process."""
    leases = {one.work.unit_id: one.lease_id for one in finished}
    rows = Unit.objects.select_for_update().filter(pk__in=leases, state=Unit.State.LEASED).order_by("pk")
    return {pk: tries for pk, lease, tries in rows.values_list("pk", "lease", "tries") if lease == leases[pk]}


def _close(done: Sequence[JudgedUnit]) -> None:
    """End units; failed ones with their reason."""
    now = timezone.now()
    rows = []
    for one in done:
        state = Unit.State.FAILED if one.error else Unit.State.DONE
        rows.append((state.value, None, one.error[:200], now, one.work.unit_id))
    rows_update(Unit, ("state", "lease", "error", "finished_at"), rows)


def _delete_earlier_try(unit_ids: list[int]) -> None:
    """Delete what an earlier try of these units left."""
    if unit_ids:
        UnitCall.objects.filter(unit__in=unit_ids).delete()
        Passage.objects.filter(unit__in=unit_ids).delete()


def _unit_calls(one: JudgedUnit) -> Iterable[Row]:
    for use in one.result.calls:
        if isinstance(use.call, CallUsed):
            place = (use.role, use.step, use.window, use.sample)
            yield (one.work.unit_id, use.call.call_id, *place, use.call.reused)


def _verdict(verdict: VerdictResult) -> Row:
    votes, first = verdict.votes, (verdict.first_state or "", verdict.first_value)
    counted = (votes.true, votes.false, votes.not_applicable) if votes else (None, None, None)
    how = (verdict.read_by, verdict.contradicts, verdict.sided_with)
    answer = (verdict.state, verdict.value, *first, verdict.p_true, verdict.explanation, "")
    quotes = (verdict.quotes, verdict.quotes_verified, verdict.quotes_close)
    quoted = (min(count, LARGEST_SMALL_COUNT) for count in quotes)
    return (*answer, *how, *counted, *quoted, verdict.first_brief, list(verdict.flags))


def _stored(one: JudgedUnit) -> StoredVerdicts:
    verdicts = (
        stored_verdict(each.criterion, state=each.state, value=each.value, p_true=each.p_true)
        for each in one.result.verdicts
    )
    return StoredVerdicts(one.run_id, one.work.chat_id, tuple(verdicts))


def _version_ids(articles: set[Article]) -> dict[tuple[str, int], int]:
    """Return the stored versions of articles, by key and number."""
    rows = ArticleVersion.objects.filter(
        article__key__in={article.key for article in articles},
        number__in={article.version for article in articles},
    )
    return {(key, number): pk for pk, key, number in rows.values_list("pk", "article__key", "number")}


def _count(run_id: int, done: Sequence[JudgedUnit]) -> None:
    """Add finished units to the run's counters; tokens and cost count only what this run paid for."""
    uses = [use.call for one in done for use in one.result.calls if isinstance(use.call, CallUsed)]
    paid = [used for used in uses if not used.reused]
    failed = sum(1 for one in done if one.error)
    units = (len(done) - failed, failed, len(paid), len(uses) - len(paid))
    counts = (sum(getattr(used, name) for used in paid) for name in _COUNTED)
    rows_add(Run, ("units_done", "units_failed", "calls", "reused", *_COUNTED), (*units, *counts, run_id))
