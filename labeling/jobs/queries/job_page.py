"""One labelling job for leads: progress by rater, set and topic, skipped chats, chats in work."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from labeling.consensus.core.dropped import DroppedLabels
from labeling.consensus.queries import dropped_labels
from labeling.jobs.queries.jobs import (
    MS_A_MINUTE,
    Teammate,
    is_complete,
    job_counts,
    missing_of,
    team_of,
)
from labeling.jobs.queries.unreachable import unavailable_raters, unreachable_labels
from labeling.models.chats import ChatSet
from labeling.models.labels import EXPIRED, Assignment, Consensus, Label, LabelingJob
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown

SHOWN = 50
Kind, State = Assignment.Kind, Assignment.State


@dataclass(frozen=True, slots=True)
class RaterProgress:
    """One rater's progress in the job; `submitted` includes gold chats."""

    name: str
    submitted: int = 0
    gold: int = 0
    in_work: int = 0
    skipped: int = 0
    minutes: float | None = None
    last_at: datetime | None = None
    # Why the rater can label nothing in this job any more, "" if they can.
    unavailable: str = ""


@dataclass(frozen=True, slots=True)
class TopicProgress:
    """Labels of one topic, without gold chats."""

    topic: str
    chats: int
    submitted: int
    in_work: int
    wanted: int


@dataclass(frozen=True, slots=True)
class SetProgress:
    """Labels of one set of the job; `wanted` is None for gold chats, which have no target."""

    id: int
    name: str
    role: str
    submitted: int
    wanted: int | None


@dataclass(frozen=True, slots=True)
class SkippedChat:
    """A skipped chat with the reason."""

    chat: str
    topic: str
    rater: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChatInWork:
    """A chat on lease to a rater."""

    chat: str
    topic: str
    rater: str
    expires_at: datetime
    expired: bool


@dataclass(frozen=True, slots=True)
class JobPage:
    """The page of one job."""

    submitted: int
    wanted: int
    # Wanted labels that nobody can give.
    unreachable: int
    raters: Sequence[RaterProgress]
    sets: Sequence[SetProgress]
    topics: Sequence[TopicProgress]
    skipped: Sequence[SkippedChat]
    skipped_total: int
    in_work: Sequence[ChatInWork]
    # Labels on the job's chats that answer an older text and no longer count.
    dropped: Sequence[DroppedLabels]
    # Raters who have not finished the calibration round before this job, or this round.
    missing: Sequence[str]
    team: int
    # Whether an open job has every label that raters can give.
    complete: bool = False
    # Answers of the job on which its raters are tied.
    unresolved: int = 0

    @property
    def finished(self) -> int:
        """Number of raters who have finished it."""
        return self.team - len(self.missing)


def job_page(*, job: LabelingJob, user: User) -> JobPage:
    """Return the page in a constant number of queries; lists have at most 50 rows.

    Chats that the user may not see are counted, not named.
    """
    rows = Assignment.objects.filter(job=job).order_by()
    given_back = rows.filter(state=State.SKIPPED).exclude(skip_reason=EXPIRED)
    submitted, wanted = job_counts(jobs=[job.pk]).get(job.pk, (0, 0))
    unreachable = unreachable_labels(jobs=[job]).get(job.pk, 0) if submitted < wanted else 0
    complete = is_complete(job.state, submitted, wanted, unreachable)
    team = team_of(raters=job.raters.all(), group=job.group)
    calibrates = job.chat_set.kind == ChatSet.Kind.CALIBRATION
    first = job if calibrates else job.calibration
    seen = Q(chat__in=chats_shown(user=user).values("pk"))
    return JobPage(
        submitted=submitted,
        wanted=wanted,
        unreachable=unreachable,
        raters=_raters(job, team, rows),
        sets=_sets(job, rows, submitted, wanted),
        topics=_topics(rows, labels_a_pattern=job.overlap),
        skipped=_skipped(given_back.filter(seen)),
        skipped_total=given_back.count(),
        in_work=_in_work(rows.filter(seen)) if job.state == LabelingJob.State.OPEN else (),
        dropped=_dropped(job, rows),
        missing=missing_of(job=first, team=team) if first else (),
        team=len(team),
        complete=complete,
        unresolved=_unresolved(job, rows) if complete or job.state == LabelingJob.State.CLOSED else 0,
    )


def _unresolved(job: LabelingJob, rows: QuerySet[Assignment]) -> int:
    """Return the number of answers on the job's chats on which raters are tied."""
    tied = Consensus.objects.filter(state=Consensus.State.UNRESOLVED, criterion__in=job.criteria.all())
    return tied.filter(criterion__state="active", chat__in=rows.values("chat")).count()


def _dropped(job: LabelingJob, rows: QuerySet[Assignment]) -> list[DroppedLabels]:
    """Return the labels that raters gave in the job and that no longer count."""
    given = rows.filter(state=State.SUBMITTED, chat=OuterRef("chat"), rater=OuterRef("rater"))
    criteria = list(job.criteria.order_by("dimension__position", "position"))
    return dropped_labels(labels=Label.objects.given().filter(Exists(given)), criteria=criteria)


def _raters(
    job: LabelingJob, team: Iterable[Teammate], rows: QuerySet[Assignment]
) -> tuple[RaterProgress, ...]:
    """Return the current team and former members who labelled."""
    counts = (
        rows.filter(rater__isnull=False)
        .values_list("rater__name")
        .annotate(
            submitted=Count("pk", filter=Q(state=State.SUBMITTED)),
            gold=Count("pk", filter=Q(state=State.SUBMITTED, kind=Kind.GOLD)),
            in_work=Count("pk", filter=Q(state=State.LEASED)),
            skipped=Count("pk", filter=Q(state=State.SKIPPED) & ~Q(skip_reason=EXPIRED)),
            ms=Sum("active_ms", filter=Q(state=State.SUBMITTED)),
            last_at=Max("submitted_at"),
        )
    )
    found = {
        name: RaterProgress(name, submitted, gold, held, skipped, ms / MS_A_MINUTE if ms else None, last_at)
        for name, submitted, gold, held, skipped, ms, last_at in counts
    }
    everybody = {mate.name: RaterProgress(mate.name) for mate in team} | found
    named = {rater.pk for rater in job.raters.all()}
    ended = job.state == LabelingJob.State.CLOSED
    reasons = {} if ended else unavailable_raters(names=everybody.keys(), group=job.group, named=named)
    return tuple(replace(everybody[name], unavailable=reasons.get(name, "")) for name in sorted(everybody))


def _sets(
    job: LabelingJob, rows: QuerySet[Assignment], submitted: int, wanted: int
) -> tuple[SetProgress, ...]:
    sets = [SetProgress(job.chat_set_id, job.chat_set.name, "asked", submitted, wanted)]
    if job.gold_set is not None:
        gold = rows.filter(kind=Kind.GOLD, state=State.SUBMITTED).count()
        sets.append(SetProgress(job.gold_set.pk, job.gold_set.name, "gold", gold, None))
    if (first := job.calibration) is not None:
        counts = job_counts(jobs=[first.pk]).get(first.pk, (0, 0))
        sets.append(SetProgress(first.chat_set_id, first.chat_set.name, "calibration", *counts))
    return tuple(sets)


def _topics(rows: QuerySet[Assignment], *, labels_a_pattern: int) -> tuple[TopicProgress, ...]:
    counts = (
        rows.exclude(kind=Kind.GOLD)
        .values_list("chat__topic__name")
        .annotate(
            chats=Count("chat", distinct=True),
            submitted=Count("pk", filter=Q(state=State.SUBMITTED)),
            in_work=Count("pk", filter=Q(state=State.LEASED)),
            normal=Count("pk", filter=Q(kind=Kind.NORMAL) & ~Q(state=State.SKIPPED)),
            patterns=Count("pk", filter=Q(kind=Kind.CALIBRATION, state=State.OPEN)),
        )
    )
    return tuple(
        TopicProgress(topic, chats, submitted, in_work, max(normal + patterns * labels_a_pattern, submitted))
        for topic, chats, submitted, in_work, normal, patterns in sorted(counts)
    )


def _skipped(given_back: QuerySet[Assignment]) -> tuple[SkippedChat, ...]:
    rows = given_back.order_by("-pk").values_list(
        "chat__external_id", "chat__topic__name", "rater__name", "skip_reason"
    )
    return tuple(SkippedChat(*row) for row in rows[:SHOWN])


def _in_work(rows: QuerySet[Assignment]) -> tuple[ChatInWork, ...]:
    now = timezone.now()
    leased = rows.filter(state=State.LEASED).order_by("rater__name", "pk")
    held = leased.values_list("chat__external_id", "chat__topic__name", "rater__name", "lease_expires_at")
    return tuple(
        ChatInWork(chat, topic, rater, until, until < now)
        for chat, topic, rater, until in held[:SHOWN]
        if until is not None  # a database constraint guarantees it for a lease
    )
