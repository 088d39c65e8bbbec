"""A rater's queue: their jobs with their own numbers."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_

from django.contrib.auth.models import Group
from django.db.models import Avg, Count, Exists, Max, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse
from django.utils import timezone

from common.search.registry import Hit, Query, excerpt
from labeling.chats.queries import chats_matching, contents_of
from labeling.jobs.core import gold_ahead
from labeling.jobs.queries.jobs import MS_A_MINUTE, round_left
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import EXPIRED, Adjudication, Assignment, Label, LabelingJob
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.rating.queries.labels import drafts_left, newest_drafts

RECENT = 10
CLOSED_SHOWN = 5
FAMILIAR = 10  # chats after which a rater knows a definition
# With more chats left than this the number is an estimate, so that pages stay fast on large jobs.
COUNTED = 500
# A slot that another rater got after its lease expired, and one whose lease may expire.
LOST = Q(state=Assignment.State.SKIPPED, skip_reason=EXPIRED)
RAN_OUT = Q(state=Assignment.State.LEASED, kind=Assignment.Kind.NORMAL)  # the others are each rater's own


@dataclass(frozen=True, slots=True)
class QueueJob:
    """One job as its rater sees it: `done` of the `total` chats that they submitted or may still get."""

    id: int
    name: str
    chat_set: str
    rubric: str
    rubric_id: int
    criteria_count: int
    due_at: datetime | None
    calibration: bool
    closed: bool
    # Whether the rater must finish its calibration round first.
    held_up: bool
    done: int
    total: int
    # The chat in work, if any, its topic, and its number of answered criteria.
    assignment: int | None
    topic: str
    answered: int
    # At this rater's pace over all chats; None until one is submitted.
    minutes_left: int | None

    @property
    def left(self) -> int:
        """Number of chats left."""
        return self.total - self.done

    @property
    def offered(self) -> bool:
        """Whether the rater can continue it now."""
        return self.left > 0 and not self.closed and not self.held_up

    @property
    def number(self) -> int:
        """Number of the chat in work, or of the next one, from 1."""
        return min(self.done + 1, self.total)


@dataclass(frozen=True, slots=True)
class RecentChat:
    """A chat that the rater submitted recently."""

    assignment: int
    external_id: str
    topic: str
    submitted_at: datetime | None
    minutes: float


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue page: jobs in work, then calibration rounds, then newest first; recent chats."""

    jobs: tuple[QueueJob, ...]
    recent: tuple[RecentChat, ...]

    @property
    def current(self) -> QueueJob | None:
        """The job to continue: the one with a chat in work, else the first with chats left."""
        waiting = [job for job in self.jobs if job.offered]
        return next((job for job in waiting if job.assignment), waiting[0] if waiting else None)

    @property
    def left(self) -> int:
        """Number of chats left in all jobs."""
        return sum(job.left for job in self.jobs)


@dataclass(frozen=True, slots=True)
class Progress:
    """A rater's progress in one job: chats submitted, and the total with those they may still get.

    With more than `COUNTED` chats left the total is an estimate.
    """

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class _Work:
    """A rater's rows in a job, by state and kind."""

    taken: int
    gold: int
    done: int
    leased: int
    # Position of the last one in the job's order; None before the first.
    reached: int | None


NOTHING = _Work(0, 0, 0, 0, None)


def jobs_of(*, rater_id: int) -> QuerySet[LabelingJob]:
    """Return the jobs of the rater, by name or by a current group of their account."""
    named = LabelingJob.raters.through.objects.filter(rater=rater_id).values("labelingjob")
    groups = Group.objects.filter(user__rater=rater_id).values("pk")
    return LabelingJob.objects.filter(Q(pk__in=named) | Q(group__in=groups))


def open_jobs(*, rater_id: int) -> QuerySet[LabelingJob]:
    """Return the rater's open jobs: neither closed nor waiting for a calibration round."""
    return jobs_of(rater_id=rater_id).filter(state=LabelingJob.State.OPEN)


def raters_of(*, job_id: int) -> QuerySet[Rater]:
    """Return the raters of a job: the named ones, and members of its group who have begun."""
    named = LabelingJob.raters.through.objects.filter(labelingjob=job_id).values("rater")
    group = LabelingJob.objects.filter(pk=job_id).values("group")
    member = User.objects.filter(pk=OuterRef("user"), groups__in=group)
    begun = Assignment.objects.filter(job=job_id, rater=OuterRef("pk"))
    may = Q(pk__in=named) | (Q(Exists(member)) & Q(Exists(begun)))
    return Rater.objects.filter(may, user__is_active=True)


def touched(*, rater_id: int) -> Exists:
    """Build the condition that this rater may not get the chat of a slot.

    They have or had it in the job, hold it in another open job, or saw the judge's view of it. A skipped
    chat does not come back; a chat whose lease expired may.
    """
    rows = Assignment.objects.filter(chat=OuterRef("chat"), rater=rater_id)
    here = Q(job=OuterRef("job")) & ~LOST
    elsewhere = Q(state=Assignment.State.LEASED, job__state=LabelingJob.State.OPEN)
    return Exists(rows.filter(here | elsewhere | Q(revealed_at__isnull=False)))


def free_slots(*, rater_id: int, now: datetime) -> QuerySet[Assignment]:
    """Return the slots that a rater may lease, without gold chats: open, or with an expired lease.

    NB: does not filter by job: narrow it to one job, or to `open_jobs`.
    """
    free = Q(state=Assignment.State.OPEN) | (RAN_OUT & Q(lease_expires_at__lt=now))
    return Assignment.objects.filter(free, ~touched(rater_id=rater_id)).exclude(kind=Assignment.Kind.GOLD)


def free_gold(*, rater_id: int) -> QuerySet[Assignment]:
    """Return the gold chats with a current known answer that the rater never labelled in any job."""
    own = {"chat": OuterRef("chat"), "rater": rater_id}
    submitted = Assignment.objects.filter(**own, state=Assignment.State.SUBMITTED)
    labelled = Label.objects.filter(**own, state=Label.State.SUBMITTED)
    criteria = LabelingJob.criteria.through.objects.filter(labelingjob=OuterRef(OuterRef("job")))
    known = Adjudication.objects.filter(
        chat=OuterRef("chat"),
        criterion__in=criteria.values("criterion"),
        criterion__state=Criterion.State.ACTIVE,
        replaced_at__isnull=True,
    )
    patterns = Assignment.objects.filter(kind=Assignment.Kind.GOLD, state=Assignment.State.OPEN)
    return patterns.filter(~touched(rater_id=rater_id), ~Exists(submitted), ~Exists(labelled), Exists(known))


def held_up(*, jobs: Iterable[LabelingJob], rater: Rater) -> set[int]:
    """Return the jobs whose open calibration round the rater has not finished."""
    rounds = {job.pk: job.calibration_id for job in jobs if job.calibration_id}
    if not rounds:
        return set()
    left = round_left(rater=rater.pk).filter(job__in=rounds.values(), job__state=LabelingJob.State.OPEN)
    unfinished = set(left.values_list("job", flat=True).distinct())
    return {job for job, first in rounds.items() if first in unfinished}


def queue_for(*, rater: Rater) -> Queue:
    """Return the rater's queue in a constant number of queries."""
    jobs = _shown(rater)
    own = Assignment.objects.filter(rater=rater)
    submitted = own.filter(state=Assignment.State.SUBMITTED)
    work = _work(own.filter(job__in=jobs))
    left = _left(rater, open_jobs(rater_id=rater.pk), work)
    first = held_up(jobs=jobs, rater=rater)
    pace = submitted.filter(active_ms__gt=0).aggregate(ms=Avg("active_ms"))["ms"]
    in_work = {row.job_id: row for row in _in_work(own).order_by("-pk")}  # the earliest lease wins
    drafts = _drafts(rater, in_work.values())
    rows = [
        _job(
            job,
            progress=_progress(job, rater, work.get(job.pk, NOTHING), left.get(job.pk, (0, 0))),
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
    """Return the rater's progress in one job, for the rating screen."""
    work = _work(Assignment.objects.filter(rater=rater, job=job))
    left = _left(rater, open_jobs(rater_id=rater.pk).filter(pk=job.pk), work)
    return _progress(job, rater, work.get(job.pk, NOTHING), left.get(job.pk, (0, 0)))


def _shown(rater: Rater) -> list[LabelingJob]:
    """Return the jobs of the queue: open and recently closed ones."""
    jobs = jobs_of(rater_id=rater.pk).select_related("chat_set__rubric").prefetch_related("criteria")
    newest = jobs.order_by("-pk")
    closed = newest.filter(state=LabelingJob.State.CLOSED)[:CLOSED_SHOWN]
    return [*newest.filter(state=LabelingJob.State.OPEN), *closed]


def _work(own: QuerySet[Assignment]) -> dict[int, _Work]:
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
    return {job: _Work(*numbers) for job, *numbers in counts}


def _left(rater: Rater, jobs: QuerySet[LabelingJob], work: Mapping[int, _Work]) -> dict[int, tuple[int, int]]:
    """Count chats that the rater may still get, by job: gold ones apart from the others."""
    rows = Assignment.objects.filter(job=OuterRef("pk"), state=Assignment.State.OPEN)
    places = rows.exclude(kind=Assignment.Kind.GOLD).values("position")
    first, last = (Subquery(places.order_by(order)[:1]) for order in ("position", "-position"))
    spans = {job: rest for job, *rest in jobs.values_list("pk", "gold_rate", first, last)}
    other = {job: _ahead(work.get(job, NOTHING), *span) for job, (_, *span) in spans.items()}
    near = [job for job, ahead in other.items() if ahead <= COUNTED]
    free = free_slots(rater_id=rater.pk, now=timezone.now()).filter(job__in=near).values_list("job")
    other |= dict.fromkeys(near, 0) | dict(free.annotate(Count("chat", distinct=True)))
    gold = _gold_left(rater, [job for job, (rate, *_) in spans.items() if rate])
    return {job: (gold.get(job, 0), other[job]) for job in spans}


def _ahead(work: _Work, first: int | None, last: int | None) -> int:
    """Estimate the chats from the rater's or everyone's position to the last open slot."""
    if first is None or last is None:
        return 0
    return last - max(first - 1, work.reached or 0)


def _gold_left(rater: Rater, jobs: Sequence[int]) -> dict[int, int]:
    if not jobs:
        return {}
    return dict(free_gold(rater_id=rater.pk).filter(job__in=jobs).values_list("job").annotate(Count("chat")))


def _progress(job: LabelingJob, rater: Rater, work: _Work, left: tuple[int, int]) -> Progress:
    """NB: count future gold chats from the start: a growing total would reveal them."""
    gold, other = left
    if job.gold_rate and job.state == LabelingJob.State.OPEN:
        gold = gold_ahead(
            taken=work.taken,
            gold=work.gold,
            left=other,
            available=gold,
            rate=job.gold_rate,
            seed=job.seed,
            rater=rater.pk,
        )
    leased = work.leased if job.state == LabelingJob.State.OPEN else 0
    return Progress(done=work.done, total=work.done + leased + gold + other)


def _in_work(own: QuerySet[Assignment]) -> QuerySet[Assignment]:
    leased = own.filter(state=Assignment.State.LEASED, job__state=LabelingJob.State.OPEN)
    return leased.select_related("chat__topic")


def _drafts(rater: Rater, in_work: Collection[Assignment]) -> set[tuple[int, int]]:
    """Return (chat, criterion) pairs with a draft on one of these chats."""
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
    criteria = [row.pk for row in job.criteria.all() if row.state == Criterion.State.ACTIVE]
    return QueueJob(
        id=job.pk,
        name=job.name,
        chat_set=job.chat_set.name,
        rubric=job.chat_set.rubric.name,
        rubric_id=job.chat_set.rubric_id,
        criteria_count=len(criteria),
        due_at=job.due_at,
        calibration=job.chat_set.kind == ChatSet.Kind.CALIBRATION,
        closed=job.state == LabelingJob.State.CLOSED,
        held_up=held_up,
        done=progress.done,
        total=progress.total,
        assignment=leased.pk if leased else None,
        topic=leased.chat.topic.name if leased else "",
        answered=sum((leased.chat_id, criterion) in drafts for criterion in criteria) if leased else 0,
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


# ---------- the rating screen ----------


def chat_number(*, assignment: Assignment, done: int) -> int:
    """Return the chat's number in the rater's work: after those submitted and those leased earlier."""
    return done + _others_in_work(assignment).filter(pk__lt=assignment.pk).count() + 1


def chat_in_work(*, assignment: Assignment) -> Assignment | None:
    """Return the job's chat in work to continue after correcting this one, or None."""
    return _others_in_work(assignment).filter(job__state=LabelingJob.State.OPEN).order_by("pk").first()


def familiar_since(*, assignment: Assignment) -> datetime | None:
    """Return the time after which the rater submitted `FAMILIAR` chats of the job; None before that many."""
    done = Assignment.objects.filter(
        job=assignment.job_id, rater=assignment.rater_id, state=Assignment.State.SUBMITTED
    )
    newest = done.order_by("-submitted_at").values_list("submitted_at", flat=True)
    return next(iter(newest[FAMILIAR - 1 : FAMILIAR]), None)


def _others_in_work(assignment: Assignment) -> QuerySet[Assignment]:
    leased = Assignment.objects.filter(
        job=assignment.job_id, rater=assignment.rater_id, state=Assignment.State.LEASED
    )
    return leased.exclude(pk=assignment.pk)


# ---------- search ----------


def own_chat_hits(query: Query, user: User, limit: int) -> list[Hit]:
    """Return the chats in work or submitted of this rater that match; by what the rating screen shows."""
    if not user.has_perm("labeling.label_chats"):
        return []
    states = (Assignment.State.LEASED, Assignment.State.SUBMITTED)
    own = Assignment.objects.filter(rater__user=user.pk, state__in=states)
    chats = Chat.objects.filter(pk__in=own.values("chat"))
    found = chats_matching(chats, query, limit=limit, titles=False)
    newest = {row.chat_id: row for row in own.filter(chat__in=found).select_related("job").order_by("pk")}
    return [
        Hit(
            chat.external_id,
            reverse("labeling:rate", args=[newest[chat.pk].pk]),
            ": ".join(filter(None, [newest[chat.pk].job.name, excerpt(contents_of(chat), query)])),
        )
        for chat in found
    ]
