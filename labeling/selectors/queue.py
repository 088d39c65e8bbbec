"""A rater's queue: own jobs with own numbers, nothing of anybody else."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import Avg, Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from labeling.core.orders import gold_ahead
from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, Label, LabelingJob, LabelRevision
from labeling.models.people import Rater
from labeling.selectors.labels import EXPIRED

RECENT = 10
MS_A_MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class QueueJob:
    """One job as its rater sees it: `done` chats of the `total` they submitted or may still take."""

    id: int
    name: str
    chat_set: str
    rubric: str
    rubric_id: int
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


@dataclass(frozen=True, slots=True)
class _Held:
    """A rater's rows in a job, by state and kind."""

    taken: int
    gold: int
    done: int
    leased: int


NOTHING = _Held(0, 0, 0, 0)


def jobs_of(*, rater_id: int) -> QuerySet[LabelingJob]:
    """The jobs that name the rater, or a group the rater's account belongs to now."""
    named = LabelingJob.raters.through.objects.filter(rater=rater_id).values("labelingjob")
    groups = Group.objects.filter(user__rater=rater_id).values("pk")
    return LabelingJob.objects.filter(Q(pk__in=named) | Q(group__in=groups))


def open_jobs(*, rater_id: int) -> QuerySet[LabelingJob]:
    """Those that are open: neither closed nor waiting for their calibration round."""
    return jobs_of(rater_id=rater_id).filter(state=LabelingJob.State.OPEN)


def free_slots(*, rater_id: int, now: datetime) -> QuerySet[Assignment]:
    """What a rater may take of a job of theirs: open or with a lease that ran out, on chats not yet theirs.

    A chat that the rater skipped doesn't come back; one whose lease they merely lost may. NB: says nothing
    about jobs: narrow it to one, or to `open_jobs`.
    """
    own = Assignment.objects.filter(job=OuterRef("job"), chat=OuterRef("chat"), rater=rater_id).exclude(
        state=Assignment.State.SKIPPED, skip_reason=EXPIRED
    )
    expired = Q(
        state=Assignment.State.LEASED, lease_expires_at__lt=now, kind=Assignment.Kind.NORMAL
    )  # gold and calibration chats are each rater's own
    return Assignment.objects.filter(Q(state=Assignment.State.OPEN) | expired, ~Exists(own))


def queue_for(*, rater: Rater) -> Queue:
    """The rater's queue in a fixed number of queries, however many jobs, chats and raters there are."""
    jobs = jobs_of(rater_id=rater.pk).exclude(state=LabelingJob.State.WAITING)
    own = Assignment.objects.filter(rater=rater)
    submitted = own.filter(state=Assignment.State.SUBMITTED)
    held, left = _held(own), _left(rater, open_jobs(rater_id=rater.pk).values("pk"))
    pace = submitted.filter(active_ms__gt=0).aggregate(ms=Avg("active_ms"))["ms"]
    in_work = {row.job_id: row for row in _in_work(own).order_by("-pk")}  # the one taken first wins
    drafts = _drafts(rater, [row.chat_id for row in in_work.values()])
    rows = [
        _job(
            job,
            progress=_progress(job, rater, held.get(job.pk, NOTHING), left.get(job.pk, (0, 0))),
            leased=in_work.get(job.pk),
            drafts=drafts,
            pace=pace,
        )
        for job in jobs.select_related("chat_set__rubric").prefetch_related("criteria").order_by("-pk")
    ]
    rows.sort(key=lambda row: (row.closed or not row.left, row.assignment is None))
    return Queue(jobs=tuple(rows), recent=_recent(submitted))


def job_progress(*, job: LabelingJob, rater: Rater) -> Progress:
    """The same numbers for one job, for the rating screen."""
    held = _held(Assignment.objects.filter(rater=rater, job=job)).get(job.pk, NOTHING)
    own_job = open_jobs(rater_id=rater.pk).filter(pk=job.pk).values("pk")
    return _progress(job, rater, held, _left(rater, own_job).get(job.pk, (0, 0)))


def _held(own: QuerySet[Assignment]) -> dict[int, _Held]:
    counts = own.values_list("job").annotate(
        taken=Count("pk"),
        gold=Count("pk", filter=Q(kind=Assignment.Kind.GOLD)),
        done=Count("pk", filter=Q(state=Assignment.State.SUBMITTED)),
        leased=Count("pk", filter=Q(state=Assignment.State.LEASED)),
    )
    return {job: _Held(*numbers) for job, *numbers in counts}


def _left(rater: Rater, jobs: QuerySet[Any]) -> dict[int, tuple[int, int]]:
    """Chats that the rater may still take, by job: gold ones apart from the others."""
    free = free_slots(rater_id=rater.pk, now=timezone.now()).filter(job__in=jobs)
    gold = Q(kind=Assignment.Kind.GOLD)
    counts = free.values_list("job").annotate(
        gold=Count("chat", distinct=True, filter=gold), other=Count("chat", distinct=True, filter=~gold)
    )
    return {job: (gold, other) for job, gold, other in counts}


def _progress(job: LabelingJob, rater: Rater, held: _Held, left: tuple[int, int]) -> Progress:
    """NB: gold chats to come count from the start, or a total that grows would tell each one."""
    gold, other = left
    if job.gold_rate and job.state == LabelingJob.State.OPEN:
        gold = gold_ahead(
            taken=held.taken,
            gold=held.gold,
            left=other,
            available=gold,
            rate=job.gold_rate,
            seed=job.seed,
            rater=rater.pk,
        )
    leased = held.leased if job.state == LabelingJob.State.OPEN else 0
    return Progress(done=held.done, total=held.done + leased + gold + other)


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
    progress: Progress,
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
        rubric_id=job.chat_set.rubric_id,
        criteria_count=len(asked),
        due_at=job.due_at,
        calibration=job.chat_set.kind == ChatSet.Kind.CALIBRATION,
        closed=job.state == LabelingJob.State.CLOSED,
        done=progress.done,
        total=progress.total,
        assignment=leased.pk if leased else None,
        topic=leased.chat.topic.name if leased else "",
        answered=sum((leased.chat_id, criterion) in drafts for criterion in asked) if leased else 0,
        minutes_left=None
        if pace is None
        else math.ceil((progress.total - progress.done) * pace / MS_A_MINUTE),
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
