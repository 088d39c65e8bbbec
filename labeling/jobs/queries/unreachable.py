"""Labels that no rater of a job can give any more, and the raters who can give none."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.db.models import Exists, OuterRef, Q

from labeling.models.labels import EXPIRED, Assignment, LabelingJob
from labeling.models.people import Rater, User
from labeling.sets.queries import labellers

State = Assignment.State
_SKIPPED = Q(state=State.SKIPPED) & ~Q(skip_reason=EXPIRED)


@dataclass(frozen=True, slots=True)
class _Row:
    """An assignment, without those that a rater lost with the lease."""

    state: str
    calibrates: bool
    rater: int | None


def unreachable_labels(*, jobs: Iterable[LabelingJob]) -> dict[int, int]:
    """Count by job the wanted labels that nobody can give: too few raters are left for their chats.

    A rater is left for a chat while their account is active and may label, they belong to the job, and they
    have neither labelled nor skipped the chat, nor seen the judge's view of it. Closed jobs want nothing.
    `jobs` have their raters prefetched.
    """
    open_jobs = {job.pk: job for job in jobs if job.state != LabelingJob.State.CLOSED}
    if not open_jobs:
        return {}
    able = _able(open_jobs.values())
    by_chat = _rows(open_jobs, able)
    revealed = _revealed(by_chat)
    counts: dict[int, int] = defaultdict(int)
    for (job, chat), rows in by_chat.items():
        counts[job] += _missing(rows, able[job], revealed.get(chat, set()), open_jobs[job].overlap)
    return {job: count for job, count in counts.items() if count}


def _able(jobs: Iterable[LabelingJob]) -> dict[int, set[int]]:
    """Return by job the raters who may label; an account that never labelled counts under −(its id)."""
    raters = {user: rater or -user for user, rater in labellers().values_list("pk", "rater")}
    members: dict[int, set[int]] = defaultdict(set)
    groups = {job.group_id for job in jobs} - {None}
    for group, user in User.groups.through.objects.filter(group__in=groups).values_list("group", "user"):
        if user in raters:
            members[group].add(raters[user])
    named = {rater for rater in raters.values() if rater > 0}
    return {
        job.pk: {rater.pk for rater in job.raters.all()} & named | members.get(job.group_id or 0, set())
        for job in jobs
    }


def _rows(jobs: Mapping[int, LabelingJob], able: Mapping[int, set[int]]) -> dict[tuple[int, int], list[_Row]]:
    """Return the rows of the chats that may lack a rater.

    With as many raters as labels per chat, only a chat that a rater skipped or saw judged can lack one.
    """
    short = [pk for pk, job in jobs.items() if len(able[pk]) < job.overlap]
    same_chat = Assignment.objects.filter(chat=OuterRef("chat"))
    passed = Exists(same_chat.filter(Q(job=OuterRef("job")) & _SKIPPED | Q(revealed_at__isnull=False)))
    rows = Assignment.objects.filter(Q(job__in=short) | passed, job__in=jobs)
    rows = rows.exclude(kind=Assignment.Kind.GOLD).exclude(state=State.SKIPPED, skip_reason=EXPIRED)
    found: dict[tuple[int, int], list[_Row]] = defaultdict(list)
    for job, chat, kind, state, rater in rows.order_by().values_list("job", "chat", "kind", "state", "rater"):
        found[job, chat].append(_Row(state, kind == Assignment.Kind.CALIBRATION, rater))
    return found


def _revealed(chats: Collection[tuple[int, int]]) -> dict[int, set[int]]:
    """Return by chat the raters who saw the judge's view of it."""
    jobs = {job for job, _ in chats}
    if not jobs:
        return {}
    same = Assignment.objects.filter(job__in=jobs, chat=OuterRef("chat"))
    rows = Assignment.objects.filter(Exists(same), revealed_at__isnull=False, rater__isnull=False)
    seen: dict[int, set[int]] = defaultdict(set)
    for chat, rater in rows.values_list("chat", "rater"):
        seen[chat].add(rater or 0)
    return seen


def _missing(rows: Collection[_Row], able: Collection[int], revealed: Collection[int], overlap: int) -> int:
    """Count the labels of one chat that nobody can give."""
    calibrates = any(row.calibrates for row in rows)
    wanted = overlap if calibrates else sum(row.state != State.SKIPPED for row in rows)
    coming = sum(
        row.state == State.SUBMITTED or (row.state == State.LEASED and row.rater in able) for row in rows
    )
    through = {row.rater for row in rows} | set(revealed)
    left = sum(rater not in through for rater in able)
    return max(0, wanted - coming - left)


def unavailable_raters(
    *, names: Collection[str], group: Group | None, named: Collection[int]
) -> dict[str, str]:
    """Return, by name, why raters can label nothing in a job of these `named` raters and this group."""
    able = dict(labellers().filter(rater__name__in=names).values_list("rater__name", "pk"))
    members = set(User.objects.filter(groups=group).values_list("pk", flat=True)) if group else set()
    reasons = {}
    for rater in Rater.objects.filter(name__in=names).select_related("user"):
        if rater.user is None or not rater.user.is_active:
            reasons[rater.name] = "account inactive" if rater.user else "no account"
        elif rater.name not in able:
            reasons[rater.name] = "no longer a rater"
        elif rater.pk not in named and rater.user_id not in members:
            reasons[rater.name] = "left the group"
    return reasons
