"""Labelling jobs with their counts, for leads. The number of queries is constant."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import ceil, floor

from django.contrib.auth.models import Group
from django.core.paginator import Page, Paginator
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from common.inbox.subjects import Subject
from common.search.registry import Hit, Query
from labeling.jobs.queries.unreachable import unreachable_labels
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Adjudication, Assignment, LabelingJob
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.models.sampling import SamplePlan
from labeling.sets.queries import labellers

MS_A_MINUTE = 60_000
JOBS_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class Teammate:
    """A member of a job's team; `rater` is the rater's id, None for an account that never labelled."""

    name: str
    rater: int | None


@dataclass(frozen=True, slots=True)
class JobRow:
    """A labelling job in a list; label counts exclude gold chats."""

    id: int
    name: str
    chat_set: str
    due_at: datetime | None
    overdue: bool
    state: str
    overlap: int
    overlap_share: float | None
    calibration: bool
    raters: Sequence[str]
    group: str
    submitted: int
    wanted: int
    # Wanted labels that nobody can give.
    unreachable: int
    # Whether an open job has every label that raters can give.
    complete: bool = False


@dataclass(frozen=True, slots=True)
class PlanJobs:
    """A sample plan whose finished jobs have a page of their own: jobs, those not closed, the newest day."""

    id: int
    name: str
    jobs: int
    not_closed: int
    newest: date


@dataclass(frozen=True, slots=True)
class JobList:
    """A page of a list of jobs, newest first: those of one plan, or those that lists show, and all plans."""

    jobs: Sequence[JobRow]
    page: "Page[LabelingJob]"
    plans: Sequence[PlanJobs] = ()
    plan: SamplePlan | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a job: labels, chats, chats per rater on average, gold chats in addition."""

    chats: int
    several: int
    labels: int
    raters: int
    gold: int

    @property
    def each(self) -> int:
        """Chats per rater in equal shares."""
        return ceil(self.labels / self.raters) if self.raters else 0


def job_rows(
    *, chat_set: ChatSet | None = None, jobs: QuerySet[LabelingJob] | None = None, limit: int | None = None
) -> list[JobRow]:
    """List labelling jobs, newest first: all, one set's, or `jobs`; at most `limit`."""
    chosen = LabelingJob.objects.all() if jobs is None else jobs
    if chat_set is not None:
        chosen = chosen.filter(chat_set=chat_set)
    rows = list(chosen.select_related("chat_set", "group").prefetch_related("raters").order_by("-pk")[:limit])
    counts = job_counts(jobs=[row.pk for row in rows])
    unfinished = [row for row in rows if row.pk in counts and counts[row.pk][0] < counts[row.pk][1]]
    unreachable = unreachable_labels(jobs=unfinished)
    return [_job_row(row, *counts.get(row.pk, (0, 0)), unreachable.get(row.pk, 0)) for row in rows]


def job_list(params: Mapping[str, str]) -> JobList | None:
    """Return a page of a list; `plan` and `q` (words of a job's name) choose jobs of a plan.

    None for a plan that does not exist.
    """
    plan, words, number = None, params.get("q", "").strip(), params.get("page")
    if given := params.get("plan", ""):
        plan = SamplePlan.objects.filter(pk=int(given)).first() if _is_id(given) else None
        if plan is None:
            return None
        chosen = LabelingJob.objects.of_plan(plan.pk).filter(name__icontains=words)
    else:
        chosen = LabelingJob.objects.listed()
    page = Paginator(chosen.order_by("-pk"), JOBS_A_PAGE).get_page(number)
    rows = job_rows(jobs=LabelingJob.objects.filter(pk__in=[job.pk for job in page]))
    return JobList(rows, page, () if plan else plan_jobs(), plan, words if plan else "")


def plan_jobs() -> list[PlanJobs]:
    """List the sample plans that have opened jobs, by name; one query."""
    not_closed = Q(draws__job__state__in=[LabelingJob.State.WAITING, LabelingJob.State.OPEN])
    plans = SamplePlan.objects.filter(draws__job__isnull=False).order_by("name")
    counted = plans.annotate(
        jobs=Count("draws__job"),
        not_closed=Count("draws__job", filter=not_closed),
        newest=Max("draws__day"),
    )
    return [PlanJobs(*row) for row in counted.values_list("pk", "name", "jobs", "not_closed", "newest")]


def _is_id(text: str) -> bool:
    return text.isdecimal() and len(text) < 19


def job_counts(*, jobs: Collection[int]) -> dict[int, tuple[int, int]]:
    """Count submitted and wanted labels by job; a calibration chat wants one from each rater."""
    kind, state = Assignment.Kind, Assignment.State
    rows = Assignment.objects.filter(job__in=jobs).exclude(kind=kind.GOLD).exclude(state=state.SKIPPED)
    counted = (
        rows.order_by()
        .values_list("job", "job__overlap")
        .annotate(
            submitted=Count("pk", filter=Q(state=state.SUBMITTED)),
            normal=Count("pk", filter=Q(kind=kind.NORMAL)),
            patterns=Count("pk", filter=Q(kind=kind.CALIBRATION, state=state.OPEN)),
        )
    )
    return {
        job: (submitted, max(normal + patterns * overlap, submitted))
        for job, overlap, submitted, normal, patterns in counted
    }


def is_complete(state: str, submitted: int, wanted: int, unreachable: int) -> bool:
    """Return whether an open job has every label that raters can give."""
    return state == LabelingJob.State.OPEN and submitted > 0 and submitted + unreachable >= wanted


def _job_row(job: LabelingJob, submitted: int, wanted: int, unreachable: int) -> JobRow:
    late = job.due_at is not None and job.due_at < timezone.now()
    return JobRow(
        id=job.pk,
        name=job.name,
        chat_set=job.chat_set.name,
        due_at=job.due_at,
        overdue=late and job.state != LabelingJob.State.CLOSED and submitted < wanted,
        state=job.state,
        overlap=job.overlap,
        overlap_share=job.overlap_share,
        calibration=job.chat_set.kind == ChatSet.Kind.CALIBRATION,
        raters=sorted(rater.name for rater in job.raters.all()),
        group=job.group.name if job.group else "",
        submitted=submitted,
        wanted=wanted,
        unreachable=unreachable,
        complete=is_complete(job.state, submitted, wanted, unreachable),
    )


def jobs_with_all_labels() -> list[LabelingJob]:
    """Return the open jobs whose every label that somebody can give is there."""
    rows = LabelingJob.objects.filter(state=LabelingJob.State.OPEN).select_related("created_by")
    jobs = {job.pk: job for job in rows.prefetch_related("raters")}
    counts = job_counts(jobs=jobs)
    missing = {pk: wanted - submitted for pk, (submitted, wanted) in counts.items() if wanted}
    unreachable = unreachable_labels(jobs=[jobs[pk] for pk, n in missing.items() if n > 0])
    return [jobs[pk] for pk, n in missing.items() if n <= unreachable.get(pk, 0)]


def job_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these jobs that the user may open."""
    if not user.has_perm("labeling.manage_labeling"):
        return {}
    rows = LabelingJob.objects.filter(pk__in=ids)
    return {row.pk: Subject(row.name, reverse("labeling:job_detail", args=[row.pk])) for row in rows}


def job_size(
    *, chats: int, overlap: int, raters: int, share: float | None = None, gold_rate: float = 0, gold: int = 0
) -> Size:
    """Compute the size of a job with this number of chats; `gold` is the number of available gold chats."""
    several = chats if share is None else round(share * chats)
    labels = several * overlap + chats - several
    each = ceil(labels / raters) if raters else 0
    mixed_in = min(gold, floor(each * gold_rate / (1 - gold_rate)))
    return Size(chats=chats, several=several, labels=labels, raters=raters, gold=mixed_in)


def team_of(*, raters: Iterable[Rater], group: Group | None) -> list[Teammate]:
    """Return the named raters and the group's current members who may label, each once, by name."""
    team = {rater.pk: Teammate(rater.name, rater.pk) for rater in raters}
    new = []
    for user in labellers().filter(groups=group) if group else ():
        if (rater := getattr(user, "rater", None)) is None:
            new.append(Teammate(user.get_username(), None))
        else:
            team[rater.pk] = Teammate(rater.name, rater.pk)
    return sorted([*team.values(), *new], key=lambda mate: mate.name)


def team_size(*, accounts: Iterable[User], group: Group | None) -> int:
    """Count the selected accounts and the group's members, each once."""
    members = labellers().filter(groups=group).values_list("pk", flat=True) if group else ()
    return len({account.pk for account in accounts} | set(members))


def gold_chats(
    *, gold_set: ChatSet, own_sets: Collection[ChatSet], criteria: Sequence[Criterion]
) -> list[int]:
    """Return the chats of a gold set with a known answer, without chats of the job's own sets."""
    known = Adjudication.objects.filter(
        chat=OuterRef("chat"), criterion__in=criteria, replaced_at__isnull=True
    )
    others = ChatSetMember.objects.filter(chat_set__in=own_sets).values("chat")
    members = ChatSetMember.objects.filter(Exists(known), chat_set=gold_set).exclude(chat__in=others)
    return list(members.order_by("position").values_list("chat_id", flat=True))


def round_left(*, rater: int | OuterRef) -> QuerySet[Assignment]:
    """Return the calibration chats that a rater still has to label, each as its pattern row.

    Skipped chats and chats whose judge's view they saw are not among them.
    """
    own = Assignment.objects.filter(chat=OuterRef("chat"), rater=rater)
    ended = Q(job=OuterRef("job"), state__in=[Assignment.State.SUBMITTED, Assignment.State.SKIPPED])
    through = Exists(own.filter(ended | Q(revealed_at__isnull=False)))
    patterns = Assignment.objects.filter(kind=Assignment.Kind.CALIBRATION, state=Assignment.State.OPEN)
    return patterns.filter(~through)


def finished_round(*, job: LabelingJob) -> set[int]:
    """Return the raters who finished a calibration round and submitted at least one chat of it."""
    left = round_left(rater=OuterRef(OuterRef("pk"))).filter(job=job)
    submitted = Assignment.objects.filter(job=job, state=Assignment.State.SUBMITTED, rater=OuterRef("pk"))
    return set(Rater.objects.filter(Exists(submitted), ~Exists(left)).values_list("pk", flat=True))


def missing_of(*, job: LabelingJob, team: Iterable[Teammate]) -> tuple[str, ...]:
    """Return the team members who have not finished a calibration round."""
    finished = finished_round(job=job)
    return tuple(mate.name for mate in team if mate.rater not in finished)


def job_hits(query: Query, user: User, limit: int) -> list[Hit]:
    """Return the labelling jobs that match by name or set, if the user may open them; newest first."""
    if not user.has_perm("labeling.manage_labeling"):
        return []
    rows = LabelingJob.objects.filter(query.matches("name", "chat_set__name")).select_related("chat_set")
    return [
        Hit(
            row.name,
            reverse("labeling:job_detail", args=[row.pk]),
            f"{row.chat_set}, {row.get_state_display().lower()}",
        )
        for row in rows.order_by("-pk")[:limit]
    ]


def rater_hits(query: Query, user: User, limit: int) -> list[Hit]:
    """Return the raters who match by name, account or e-mail, for leads: each with their newest job."""
    if not user.has_perm("labeling.manage_labeling"):
        return []
    fields = ("name", "user__username", "user__first_name", "user__last_name", "user__email")
    rows = Rater.objects.filter(query.matches(*fields)).order_by("name")[:limit]
    held = Assignment.objects.filter(rater__in=[row.pk for row in rows]).order_by("job").distinct()
    jobs = dict(held.values_list("rater", "job"))  # the newest one wins
    return [_rater_hit(row, jobs.get(row.pk)) for row in rows]


def _rater_hit(rater: Rater, job: int | None) -> Hit:
    if job is None:
        return Hit(rater.name, reverse("quality:list"), "No job yet")
    return Hit(rater.name, reverse("labeling:job_detail", args=[job]), "Newest job of this rater")
