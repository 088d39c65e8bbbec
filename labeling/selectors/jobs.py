"""Labelling jobs as a lead sees them. Counts only; no query grows with the chats."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import Group
from django.db.models import Count, Exists, OuterRef, Q

from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Adjudication, Assignment, LabelingJob
from labeling.models.people import Rater
from labeling.models.rubric import Criterion
from labeling.selectors.sets import labellers


@dataclass(frozen=True, slots=True)
class Teammate:
    """Somebody who labels in a job; `rater` is the rater's id, None for an account that never labelled."""

    name: str
    rater: int | None


@dataclass(frozen=True, slots=True)
class JobRow:
    """A labelling job in a list."""

    id: int
    name: str
    chat_set: str
    due_at: datetime | None
    state: str
    overlap: int
    raters: Sequence[str]
    submitted: int
    wanted: int


def job_rows(*, chat_set: ChatSet | None = None) -> list[JobRow]:
    """The labelling jobs, all or one set's, newest first."""
    jobs = LabelingJob.objects.select_related("chat_set").prefetch_related("raters").order_by("-pk")
    if chat_set is not None:
        jobs = jobs.filter(chat_set=chat_set)
    wanted = Assignment.objects.filter(job__in=jobs.order_by().values("pk")).exclude(
        state=Assignment.State.SKIPPED
    )
    counted = (
        wanted.order_by()
        .values("job")
        .annotate(wanted=Count("pk"), submitted=Count("pk", filter=Q(state=Assignment.State.SUBMITTED)))
    )
    counts = {row["job"]: row for row in counted}
    return [
        JobRow(
            id=job.pk,
            name=job.name,
            chat_set=job.chat_set.name,
            due_at=job.due_at,
            state=job.state,
            overlap=job.overlap,
            raters=[rater.name for rater in job.raters.all()],
            submitted=counts[job.pk]["submitted"],
            wanted=counts[job.pk]["wanted"],
        )
        for job in jobs
    ]


def team_of(*, raters: Iterable[Rater], group: Group | None) -> list[Teammate]:
    """The named raters and whoever in the group may label today, each once, by name."""
    team = {rater.pk: Teammate(rater.name, rater.pk) for rater in raters}
    new = []
    for user in labellers().filter(groups=group) if group else ():
        if (rater := getattr(user, "rater", None)) is None:
            new.append(Teammate(user.get_username(), None))
        else:
            team[rater.pk] = Teammate(rater.name, rater.pk)
    return sorted([*team.values(), *new], key=lambda mate: mate.name)


def gold_chats(*, gold_set: ChatSet, chat_set: ChatSet, criteria: Sequence[Criterion]) -> list[int]:
    """The chats of a gold set with a known answer to a criterion; none that is in the chat set too."""
    known = Adjudication.objects.filter(
        chat=OuterRef("chat"), criterion__in=criteria, replaced_at__isnull=True
    )
    asked = ChatSetMember.objects.filter(chat_set=chat_set).values("chat")
    members = ChatSetMember.objects.filter(Exists(known), chat_set=gold_set).exclude(chat__in=asked)
    return list(members.order_by("position").values_list("chat_id", flat=True))


def finished_round(*, job: LabelingJob) -> set[int]:
    """The raters who submitted or skipped every chat of a calibration round, and submitted any."""
    rows = Assignment.objects.filter(job=job)
    chats = rows.filter(state=Assignment.State.OPEN).count()
    ended = rows.filter(state__in=[Assignment.State.SUBMITTED, Assignment.State.SKIPPED])
    per_rater = ended.values_list("rater").annotate(
        chats=Count("pk"), submitted=Count("pk", filter=Q(state=Assignment.State.SUBMITTED))
    )
    return set(per_rater.filter(chats__gte=chats, submitted__gt=0).values_list("rater", flat=True))
