"""A rater's queue: own jobs with own numbers, nothing of anybody else."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_

from django.contrib.auth.models import Group
from django.db.models import Avg, Count, Exists, Max, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from labeling.jobs.core import gold_ahead
from labeling.jobs.queries.jobs import MS_A_MINUTE, round_left
from labeling.models.chats import ChatSet
from labeling.models.labels import EXPIRED, Adjudication, Assignment, Label, LabelingJob
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.rating.queries.labels import drafts_left, newest_drafts

RECENT = 10
CLOSED_SHOWN = 5
# With more chats to go than these their number is an estimate, or the pages would grow with the job.
COUNTED = 500
# A slot that went to somebody else because its lease ran out, and one that may.
LOST = Q(state=Assignment.State.SKIPPED, skip_reason=EXPIRED)
RAN_OUT = Q(state=Assignment.State.LEASED, kind=Assignment.Kind.NORMAL)  # the others are each rater's own


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
    # Whether chats of its calibration round come first.
    held_up: bool
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
    def offered(self) -> bool:
        """Whether the rater can go on with it now."""
        return self.left > 0 and not self.closed and not self.held_up

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
    """The whole page: jobs in work first, then rounds, then newest first; the chats submitted last."""

    jobs: tuple[QueueJob, ...]
    recent: tuple[RecentChat, ...]

    @property
    def current(self) -> QueueJob | None:
        """The job to go on with: the one with a chat in work, else the first with chats left."""
        waiting = [job for job in self.jobs if job.offered]
        return next((job for job in waiting if job.assignment), waiting[0] if waiting else None)

    @property
    def left(self) -> int:
        """Chats to go over all jobs."""
        return sum(job.left for job in self.jobs)


@dataclass(frozen=True, slots=True)
class Progress:
    """A rater's way through one job: chats submitted, and those plus what they may still take.

    With more than `COUNTED` chats to go the total is an estimate.
    """

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class _Held:
    """A rater's rows in a job, by state and kind."""

    taken: int
    gold: int
    done: int
    leased: int
    # The last position of one in the job's order; None before the first.
    reached: int | None


NOTHING = _Held(0, 0, 0, 0, None)


def jobs_of(*, rater_id: int) -> QuerySet[LabelingJob]:
    """The jobs that name the rater, or a group the rater's account belongs to now."""
    named = LabelingJob.raters.through.objects.filter(rater=rater_id).values("labelingjob")
    groups = Group.objects.filter(user__rater=rater_id).values("pk")
    return LabelingJob.objects.filter(Q(pk__in=named) | Q(group__in=groups))


def open_jobs(*, rater_id: int) -> QuerySet[LabelingJob]:
    """Those that are open: neither closed nor waiting for their calibration round."""
    return jobs_of(rater_id=rater_id).filter(state=LabelingJob.State.OPEN)


def raters_of(*, job_id: int) -> QuerySet[Rater]:
    """Who may come for a chat of a job: its named raters, and of its group those who have begun."""
    named = LabelingJob.raters.through.objects.filter(labelingjob=job_id).values("rater")
    group = LabelingJob.objects.filter(pk=job_id).values("group")
    member = User.objects.filter(pk=OuterRef("user"), groups__in=group)
    begun = Assignment.objects.filter(job=job_id, rater=OuterRef("pk"))
    may = Q(pk__in=named) | (Q(Exists(member)) & Q(Exists(begun)))
    return Rater.objects.filter(may, user__is_active=True)


def touched(*, rater_id: int) -> Exists:
    """The condition that the chat of a slot is not for this rater.

    They have or had it in the job, hold it in another open one, or were shown the judge's view of it. A chat
    that they skipped doesn't come back; one whose lease they merely lost may.
    """
    rows = Assignment.objects.filter(chat=OuterRef("chat"), rater=rater_id)
    here = Q(job=OuterRef("job")) & ~LOST
    elsewhere = Q(state=Assignment.State.LEASED, job__state=LabelingJob.State.OPEN)
    return Exists(rows.filter(here | elsewhere | Q(revealed_at__isnull=False)))


def free_slots(*, rater_id: int, now: datetime) -> QuerySet[Assignment]:
    """What a rater may take of a job of theirs, gold chats apart: open, or with a lease that ran out.

    NB: says nothing about jobs: narrow it to one, or to `open_jobs`.
    """
    free = Q(state=Assignment.State.OPEN) | (RAN_OUT & Q(lease_expires_at__lt=now))
    return Assignment.objects.filter(free, ~touched(rater_id=rater_id)).exclude(kind=Assignment.Kind.GOLD)


def free_gold(*, rater_id: int) -> QuerySet[Assignment]:
    """Gold chats that a rater never labelled, in any job, whose known answer still stands."""
    own = {"chat": OuterRef("chat"), "rater": rater_id}
    submitted = Assignment.objects.filter(**own, state=Assignment.State.SUBMITTED)
    labelled = Label.objects.filter(**own, state=Label.State.SUBMITTED)
    asked = LabelingJob.criteria.through.objects.filter(labelingjob=OuterRef(OuterRef("job")))
    known = Adjudication.objects.filter(
        chat=OuterRef("chat"),
        criterion__in=asked.values("criterion"),
        criterion__state=Criterion.State.ACTIVE,
        replaced_at__isnull=True,
    )
    patterns = Assignment.objects.filter(kind=Assignment.Kind.GOLD, state=Assignment.State.OPEN)
    return patterns.filter(~touched(rater_id=rater_id), ~Exists(submitted), ~Exists(labelled), Exists(known))


def held_up(*, jobs: Iterable[LabelingJob], rater: Rater) -> set[int]:
    """The jobs whose calibration round the rater has not finished; a closed round holds up nobody."""
    rounds = {job.pk: job.calibration_id for job in jobs if job.calibration_id}
    if not rounds:
        return set()
    left = round_left(rater=rater.pk).filter(job__in=rounds.values(), job__state=LabelingJob.State.OPEN)
    unfinished = set(left.values_list("job", flat=True).distinct())
    return {job for job, first in rounds.items() if first in unfinished}


def queue_for(*, rater: Rater) -> Queue:
    """The rater's queue in a fixed number of queries, however many jobs, chats and raters there are."""
    jobs = _shown(rater)
    own = Assignment.objects.filter(rater=rater)
    submitted = own.filter(state=Assignment.State.SUBMITTED)
    held = _held(own.filter(job__in=jobs))
    left = _left(rater, open_jobs(rater_id=rater.pk), held)
    first = held_up(jobs=jobs, rater=rater)
    pace = submitted.filter(active_ms__gt=0).aggregate(ms=Avg("active_ms"))["ms"]
    in_work = {row.job_id: row for row in _in_work(own).order_by("-pk")}  # the one taken first wins
    drafts = _drafts(rater, in_work.values())
    rows = [
        _job(
            job,
            progress=_progress(job, rater, held.get(job.pk, NOTHING), left.get(job.pk, (0, 0))),
            held_up=job.pk in first,
            leased=in_work.get(job.pk),
            drafts=drafts,
            pace=pace,
        )
        for job in jobs
    ]
    rows.sort(key=lambda row: (not row.offered, row.assignment is None, not row.calibration))
    return Queue(jobs=tuple(rows), recent=_recent(submitted))


def job_progress(*, job: LabelingJob, rater: Rater) -> Progress:
    """The same numbers for one job, for the rating screen."""
    held = _held(Assignment.objects.filter(rater=rater, job=job))
    left = _left(rater, open_jobs(rater_id=rater.pk).filter(pk=job.pk), held)
    return _progress(job, rater, held.get(job.pk, NOTHING), left.get(job.pk, (0, 0)))


def _shown(rater: Rater) -> list[LabelingJob]:
    """The jobs of the queue: the open ones, and those closed last."""
    jobs = jobs_of(rater_id=rater.pk).select_related("chat_set__rubric").prefetch_related("criteria")
    newest = jobs.order_by("-pk")
    closed = newest.filter(state=LabelingJob.State.CLOSED)[:CLOSED_SHOWN]
    return [*newest.filter(state=LabelingJob.State.OPEN), *closed]


def _held(own: QuerySet[Assignment]) -> dict[int, _Held]:
    counts = (
        own.exclude(LOST)
        .values_list("job")
        .annotate(
            taken=Count("pk"),
            gold=Count("pk", filter=Q(kind=Assignment.Kind.GOLD)),
            done=Count("pk", filter=Q(state=Assignment.State.SUBMITTED)),
            leased=Count("pk", filter=Q(state=Assignment.State.LEASED)),
            reached=Max("position", filter=~Q(kind=Assignment.Kind.GOLD)),
        )
    )
    return {job: _Held(*numbers) for job, *numbers in counts}


def _left(rater: Rater, jobs: QuerySet[LabelingJob], held: Mapping[int, _Held]) -> dict[int, tuple[int, int]]:
    """Chats that the rater may still take, by job: gold ones apart from the others."""
    rows = Assignment.objects.filter(job=OuterRef("pk"), state=Assignment.State.OPEN)
    places = rows.exclude(kind=Assignment.Kind.GOLD).values("position")
    first, last = (Subquery(places.order_by(order)[:1]) for order in ("position", "-position"))
    spans = {job: rest for job, *rest in jobs.values_list("pk", "gold_rate", first, last)}
    other = {job: _ahead(held.get(job, NOTHING), *span) for job, (_, *span) in spans.items()}
    near = [job for job, ahead in other.items() if ahead <= COUNTED]
    free = free_slots(rater_id=rater.pk, now=timezone.now()).filter(job__in=near).values_list("job")
    other |= dict.fromkeys(near, 0) | dict(free.annotate(Count("chat", distinct=True)))
    gold = _gold_left(rater, [job for job, (rate, *_) in spans.items() if rate])
    return {job: (gold.get(job, 0), other[job]) for job in spans}


def _ahead(held: _Held, first: int | None, last: int | None) -> int:
    """Chats from where the rater stands, or the work of all, to the last one with an open slot."""
    if first is None or last is None:
        return 0
    return last - max(first - 1, held.reached or 0)


def _gold_left(rater: Rater, jobs: Sequence[int]) -> dict[int, int]:
    if not jobs:
        return {}
    return dict(free_gold(rater_id=rater.pk).filter(job__in=jobs).values_list("job").annotate(Count("chat")))


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


def _drafts(rater: Rater, in_work: Collection[Assignment]) -> set[tuple[int, int]]:
    """(chat, criterion) pairs with a draft that waits to be submitted with one of these chats."""
    if not in_work:
        return set()
    chats = [row.chat_id for row in in_work]
    here = (Q(label__chat=row.chat_id) & drafts_left(assignment=row) for row in in_work)
    rows = newest_drafts().filter(reduce(or_, here), label__rater=rater, label__chat__in=chats)
    return set(rows.values_list("label__chat_id", "label__criterion_id"))


def _job(
    job: LabelingJob,
    *,
    progress: Progress,
    held_up: bool,
    leased: Assignment | None,
    drafts: set[tuple[int, int]],
    pace: float | None,
) -> QueueJob:
    asked = [row.pk for row in job.criteria.all() if row.state == Criterion.State.ACTIVE]
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
        held_up=held_up,
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
