"""How fast raters answered, by chat, and which chats were rushed."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Count, Q, QuerySet

from alignment.rater_quality.core import shortest_ms
from common.jsonl import in_batches
from labeling.models.chats import Chat
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.rubric import Criterion

CHATS_A_QUERY = 10_000  # SQLite takes 32,766 values in one query
READ = {"user", "assistant"}  # tool and system turns are folded on the rating screen


@dataclass(frozen=True, slots=True)
class Timed:
    """One submitted chat with a running clock."""

    assignment: int
    rater: int
    answers: int
    active_ms: int
    rushed: bool


@dataclass(frozen=True, slots=True)
class Pace:
    """Of one rater: chats timed, how many of them rushed, and the median seconds an answer."""

    timed: int = 0
    rushed: int = 0
    seconds: float | None = None


def timed(assignments: QuerySet[Assignment]) -> list[Timed]:
    """The submitted ones that have an active time; a query more for every 10,000 chats that may be rushed."""
    rows = list(
        assignments.filter(state=Assignment.State.SUBMITTED, active_ms__gt=0).values_list(
            "pk", "rater_id", "job_id", "chat_id", "active_ms", "chat__char_count"
        )
    )
    asked = _criteria_of({row[2] for row in rows})
    # The whole chat's length is stored: only where the time is short for that, its turns have to be read.
    doubtful = [
        row[3] for row in rows if row[4] < shortest_ms(characters=row[5], answers=asked.get(row[2], 0))
    ]
    lengths = _readable(doubtful)
    return [
        Timed(
            assignment=pk,
            rater=rater,
            answers=asked.get(job, 0),
            active_ms=active_ms,
            rushed=chat in lengths
            and active_ms < shortest_ms(characters=lengths[chat], answers=asked.get(job, 0)),
        )
        for pk, rater, job, chat, active_ms, _ in rows
    ]


def paces(found: Iterable[Timed]) -> dict[int, Pace]:
    """By rater id."""
    by_rater: dict[int, list[Timed]] = {}
    for row in found:
        by_rater.setdefault(row.rater, []).append(row)
    return {rater: _pace(rows) for rater, rows in by_rater.items()}


def rushed_among(assignments: Collection[int]) -> set[int]:
    """Which of these assignments were rushed."""
    return {row.assignment for row in timed(Assignment.objects.filter(pk__in=assignments)) if row.rushed}


def _pace(rows: list[Timed]) -> Pace:
    seconds = [row.active_ms / 1000 / row.answers for row in rows if row.answers]
    return Pace(len(rows), sum(row.rushed for row in rows), median(seconds) if seconds else None)


def _criteria_of(jobs: Collection[int]) -> dict[int, int]:
    """Number of questions by job; the rating screen leaves out the retired ones."""
    active = Q(criteria__state=Criterion.State.ACTIVE)
    rows = LabelingJob.objects.filter(pk__in=jobs).order_by()
    rows = rows.annotate(asked=Count("criteria", filter=active))
    return dict(rows.values_list("pk", "asked"))


def _readable(chats: Collection[int]) -> dict[int, int]:
    """Characters of customer and bot by chat."""
    return {
        pk: _characters(messages)
        for some in in_batches(sorted(set(chats)), CHATS_A_QUERY)
        for pk, messages in Chat.objects.filter(pk__in=some)
        .values_list("pk", "messages")
        .iterator(chunk_size=500)
    }


def _characters(messages: list[dict[str, Any]]) -> int:
    return sum(len(str(message["content"])) for message in messages if message["role"] in READ)
