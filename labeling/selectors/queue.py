"""A rater's queue: own jobs with own numbers, nothing of anybody else."""

import math
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Avg, Count, F, Q, QuerySet
from django.utils import timezone

from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, Label, LabelingJob, LabelRevision
from labeling.models.people import Rater
from labeling.selectors.labels import free_slots

RECENT = 10
MS_A_MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class QueueJob:
    """One job as its rater sees it: `done` chats of the `total` they submitted or may still take."""

    id: int
    name: str
    chat_set: str
    rubric: str
    criteria_count: int
    due_at: datetime | None
    calibration: bool
    closed: bool
    done: int
    total: int
    # The chat in work, if any, its topic, and how many of its criteria are answered.
    assignment: int | None
    topic: str
    answered: int
    # At this rater's own pace over all chats; None until one is submitted.
    minutes_left: int | None

    @property
    def left(self) -> int:
        """Chats to go."""
        return self.total - self.done

    @property
    def number(self) -> int:
        """The chat in work, or the next one, counted from 1."""
        return min(self.done + 1, self.total)


@dataclass(frozen=True, slots=True)
class RecentChat:
    """A chat the rater submitted lately."""

    assignment: int
    external_id: str
    topic: str
    submitted_at: datetime | None
    minutes: float


@dataclass(frozen=True, slots=True)
class Queue:
    """The whole page: jobs in work first, then newest first; the chats submitted last."""

    jobs: tuple[QueueJob, ...]
    recent: tuple[RecentChat, ...]

    @property
    def current(self) -> QueueJob | None:
        """The job to go on with: the one with a chat in work, else the first with chats left."""
        waiting = [job for job in self.jobs if job.left and not job.closed]
        return next((job for job in waiting if job.assignment), waiting[0] if waiting else None)

    @property
    def left(self) -> int:
        """Chats to go over all jobs."""
        return sum(job.left for job in self.jobs)


@dataclass(frozen=True, slots=True)
class Progress:
    """A rater's way through one job: chats submitted, and those plus what they may still take."""

    done: int
    total: int


def queue_for(*, rater: Rater) -> Queue:
    """The rater's queue in a fixed number of queries, however many jobs, chats and raters there are."""
    jobs = (
        LabelingJob.objects.filter(raters=rater)
        .select_related("chat_set__rubric")
        .prefetch_related("criteria")
    )
    own = Assignment.objects.filter(rater=rater)
    submitted = own.filter(state=Assignment.State.SUBMITTED)
    done = dict(submitted.values_list("job").annotate(chats=Count("pk")))
    free = dict(_free(rater).values_list("job").annotate(chats=Count("chat", distinct=True)))
    pace = submitted.filter(active_ms__gt=0).aggregate(ms=Avg("active_ms"))["ms"]
    in_work = {row.job_id: row for row in _in_work(own)}
    drafts = _drafts(rater, [row.chat_id for row in in_work.values()])
    rows = [
        _job(
            job,
            done=done.get(job.pk, 0),
            left=free.get(job.pk, 0) + (job.pk in in_work),
            leased=in_work.get(job.pk),
            drafts=drafts,
            pace=pace,
        )
        for job in jobs.prefetch_related("criteria").order_by("-pk")
    ]
    rows.sort(key=lambda row: (row.closed or not row.left, row.assignment is None))
    return Queue(jobs=tuple(rows), recent=_recent(submitted))


def job_progress(*, job: LabelingJob, rater: Rater) -> Progress:
    """The same numbers for one job, for the rating screen."""
    counts = Assignment.objects.filter(job=job, rater=rater).aggregate(
        done=Count("pk", filter=Q(state=Assignment.State.SUBMITTED)),
        leased=Count("pk", filter=Q(state=Assignment.State.LEASED)),
    )
    left = _free(rater).filter(job=job).aggregate(chats=Count("chat", distinct=True))["chats"]
    return Progress(done=counts["done"], total=counts["done"] + counts["leased"] + left)


def _free(rater: Rater) -> QuerySet[Assignment]:
    return free_slots(rater_id=rater.pk, now=timezone.now())


def _in_work(own: QuerySet[Assignment]) -> QuerySet[Assignment]:
    leased = own.filter(state=Assignment.State.LEASED, job__state=LabelingJob.State.OPEN)
    return leased.select_related("chat__topic")


def _drafts(rater: Rater, chat_ids: list[int]) -> set[tuple[int, int]]:
    """(chat, criterion) pairs that hold a draft answer."""
    rows = LabelRevision.objects.filter(
        label__rater=rater, label__chat__in=chat_ids, number=F("label__revision"), state=Label.State.DRAFT
    )
    return set(rows.values_list("label__chat_id", "label__criterion_id"))


def _job(
    job: LabelingJob,
    *,
    done: int,
    left: int,
    leased: Assignment | None,
    drafts: set[tuple[int, int]],
    pace: float | None,
) -> QueueJob:
    asked = [criterion.pk for criterion in job.criteria.all()]
    return QueueJob(
        id=job.pk,
        name=job.name,
        chat_set=job.chat_set.name,
        rubric=job.chat_set.rubric.name,
        criteria_count=len(asked),
        due_at=job.due_at,
        calibration=job.chat_set.kind == ChatSet.Kind.CALIBRATION,
        closed=job.state == LabelingJob.State.CLOSED,
        done=done,
        total=done + left,
        assignment=leased.pk if leased else None,
        topic=leased.chat.topic.name if leased else "",
        answered=sum((leased.chat_id, criterion) in drafts for criterion in asked) if leased else 0,
        minutes_left=None if pace is None else math.ceil(left * pace / MS_A_MINUTE),
    )


def _recent(submitted: QuerySet[Assignment]) -> tuple[RecentChat, ...]:
    rows = submitted.select_related("chat__topic").order_by("-submitted_at")
    return tuple(
        RecentChat(
            assignment=row.pk,
            external_id=row.chat.external_id,
            topic=row.chat.topic.name,
            submitted_at=row.submitted_at,
            minutes=row.active_ms / MS_A_MINUTE,
        )
        for row in rows[:RECENT]
    )
