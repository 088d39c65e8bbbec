"""Pace of raters, and rushed chats."""

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
class TimedChat:
    """One submitted chat with a recorded active time."""

    assignment: int
    rater: int
    answers: int
    active_ms: int
    rushed: bool


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of one rater: timed chats, rushed chats, and median seconds per answer."""

    timed: int = 0
    rushed: int = 0
    seconds: float | None = None


def timed_chats(assignments: QuerySet[Assignment]) -> list[TimedChat]:
    """Return submitted chats with an active time; one more query per 10,000 chats that may be rushed."""
    rows = list(
        assignments.filter(state=Assignment.State.SUBMITTED, active_ms__gt=0).values_list(
            "pk", "rater_id", "job_id", "chat_id", "active_ms", "chat__char_count"
        )
    )
    questions = _criteria_of({row[2] for row in rows})
    # The stored length counts all turns. Only chats that are too fast for it have their turns read.
    doubtful = [
        row[3] for row in rows if row[4] < shortest_ms(characters=row[5], answers=questions.get(row[2], 0))
    ]
    lengths = _readable(doubtful)
    return [
        TimedChat(
            assignment=pk,
            rater=rater,
            answers=questions.get(job, 0),
            active_ms=active_ms,
            rushed=chat in lengths
            and active_ms < shortest_ms(characters=lengths[chat], answers=questions.get(job, 0)),
        )
        for pk, rater, job, chat, active_ms, _ in rows
    ]


def paces(chats: Iterable[TimedChat]) -> dict[int, Pace]:
    """Summarise the chats by rater id."""
    by_rater: dict[int, list[TimedChat]] = {}
    for row in chats:
        by_rater.setdefault(row.rater, []).append(row)
    return {rater: _pace(rows) for rater, rows in by_rater.items()}


def rushed_among(assignments: Collection[int]) -> set[int]:
    """Return the rushed ones of these assignments."""
    return {
        row.assignment for row in timed_chats(Assignment.objects.filter(pk__in=assignments)) if row.rushed
    }


def _pace(rows: list[TimedChat]) -> Pace:
    seconds = [row.active_ms / 1000 / row.answers for row in rows if row.answers]
    return Pace(len(rows), sum(row.rushed for row in rows), median(seconds) if seconds else None)


def _criteria_of(jobs: Collection[int]) -> dict[int, int]:
    """Count the questions by job, without retired criteria."""
    active = Q(criteria__state=Criterion.State.ACTIVE)
    rows = LabelingJob.objects.filter(pk__in=jobs).order_by()
    counted = rows.annotate(questions=Count("criteria", filter=active))
    return dict(counted.values_list("pk", "questions"))


def _readable(chats: Collection[int]) -> dict[int, int]:
    """Count the characters of customer and bot by chat."""
    return {
        pk: _characters(messages)
        for some in in_batches(sorted(set(chats)), CHATS_A_QUERY)
        for pk, messages in Chat.objects.filter(pk__in=some)
        .values_list("pk", "messages")
        .iterator(chunk_size=500)
    }


def _characters(messages: list[dict[str, Any]]) -> int:
    return sum(len(str(message["content"])) for message in messages if message["role"] in READ)
