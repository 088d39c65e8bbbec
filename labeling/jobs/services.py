"""Labelling jobs: open, start and close them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from common.inbox.services import inbox_add
from common.models import InboxItem
from labeling.jobs import core as orders
from labeling.jobs.queries.jobs import gold_chats, jobs_with_all_labels, missing_of, team_of
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.imports import DataImport
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit

AT_ONCE = 2000
Kind = Assignment.Kind
State = LabelingJob.State


@dataclass(frozen=True, slots=True)
class Started:
    """A started job and the raters who had not finished its calibration round."""

    job: LabelingJob
    missing: tuple[str, ...]


@transaction.atomic
def job_open(
    *,
    chat_set: ChatSet,
    name: str,
    criteria: Sequence[Criterion],
    overlap: int,
    by: User | None,
    raters: Sequence[Rater] = (),
    group: Group | None = None,
    overlap_share: float | None = None,
    order: str = LabelingJob.Order.TOPIC,
    seed: int = 0,
    due_at: datetime | None = None,
    gold_set: ChatSet | None = None,
    gold_rate: float = 0.0,
    calibration_set: ChatSet | None = None,
) -> LabelingJob:
    """Open a job with slots 1…overlap per chat; with a share, only that share of the chats gets several.

    Raters are the named ones and the current members of the group. Every rater gets each calibration chat
    and may get each gold chat: one open row per chat is the pattern that `leases` copies for a rater.
    A `calibration_set` opens a round as a job of its own, and this job waits for `job_start`.

    Raises ValidationError where the job could never be finished.
    """
    team = len(team_of(raters=raters, group=group))
    job = LabelingJob(
        chat_set=chat_set,
        name=name,
        overlap=team if chat_set.kind == ChatSet.Kind.CALIBRATION else overlap,
        overlap_share=overlap_share,
        order=order,
        seed=seed,
        due_at=due_at,
        group=group,
        guideline=chat_set.rubric.guidelines.last(),
        gold_set=gold_set,
        gold_rate=gold_rate,
        created_by=by,
    )
    members = list(chat_set.members.order_by("position").values_list("chat_id", "chat__topic_id"))
    _check(job, criteria=criteria, chats=len(members), team=team)
    gold = _gold(job, criteria, calibration_set)
    if calibration_set is not None:
        _check_round(calibration_set, chat_set)
        job.state, job.calibration = State.WAITING, _round_of(job, calibration_set, criteria, raters, team)
    return _stored(job, criteria, raters, [*_slots(job, members), *gold])


@transaction.atomic
def job_close(*, job: LabelingJob, by: User | None) -> LabelingJob:
    """Close a job for good: its chats can no longer be leased, changed or submitted; labels and drafts stay.

    Closing a waiting job also closes its round. Repeating it changes nothing. Raises ValidationError for a
    round that a job waits for.
    """
    row = _locked(job)
    if row.state == State.CLOSED:
        return row
    if waiting := row.started_after.filter(state=State.WAITING).first():
        raise ValidationError(f"{waiting.name} waits for this round. Start or close that job first.")
    was_waiting = row.state == State.WAITING
    row.state = State.CLOSED
    row.save(update_fields=["state"])
    audit(actor=by, verb="job closed", obj=row, name=row.name)
    if was_waiting and row.calibration is not None:
        job_close(job=row.calibration, by=by)
    return row


@transaction.atomic
def job_start(*, job: LabelingJob, by: User | None) -> Started:
    """Start a waiting job for the raters who finished its calibration round; the round stays open for others.

    Raises ValidationError while no rater has finished the round, or where the job has no round.
    """
    row = _locked(job)
    if row.state != State.WAITING or row.calibration is None:
        raise ValidationError(f"{row.name} does not wait for a calibration round.")
    team = team_of(raters=row.raters.all(), group=row.group)
    missing = missing_of(job=row.calibration, team=team)
    if len(missing) == len(team):
        raise ValidationError("No rater has finished the calibration round yet.")
    row.state = State.OPEN
    row.save(update_fields=["state"])
    audit(actor=by, verb="job started", obj=row, name=row.name, missing=list(missing))
    return Started(row, missing)


@transaction.atomic
def job_raters_add(*, job: LabelingJob, raters: Sequence[Rater], by: User | None) -> tuple[str, ...]:
    """Add raters to an unfinished job and to its open calibration round; return the names of new ones.

    A calibration round wants a label of each chat from every rater, so it grows. Raises ValidationError for
    a closed job.
    """
    row = _locked(job)
    if row.state == State.CLOSED:
        raise ValidationError(f"{row.name} is closed.")
    team = team_of(raters=row.raters.all(), group=row.group)
    known = {mate.rater for mate in team}
    new = [rater for rater in raters if rater.pk not in known]
    if not new:
        return ()
    row.raters.add(*new)
    if row.chat_set.kind == ChatSet.Kind.CALIBRATION:
        row.overlap = max(row.overlap, len(team) + len(new))
        row.save(update_fields=["overlap"])
    names = tuple(sorted(rater.name for rater in new))
    audit(actor=by, verb="raters added", obj=row, name=row.name, raters=list(names))
    if row.calibration is not None and row.calibration.state != State.CLOSED:
        job_raters_add(job=row.calibration, raters=new, by=by)
    return names


def _locked(job: LabelingJob) -> LabelingJob:
    # NB: no_key, or raters who lease chats of the job would wait.
    return LabelingJob.objects.select_for_update(no_key=True, of=("self",)).get(pk=job.pk)


# ---------- rows of a job ----------


def _stored(
    job: LabelingJob, criteria: Sequence[Criterion], raters: Sequence[Rater], rows: Sequence[Assignment]
) -> LabelingJob:
    job.save()
    job.criteria.set(criteria)
    job.raters.set(raters)
    Assignment.objects.bulk_create(rows, batch_size=AT_ONCE)
    audit(
        actor=job.created_by,
        verb="job opened",
        obj=job,
        name=job.name,
        chat_set=job.chat_set.name,
        labels=len(rows),
    )
    return job


def _slots(job: LabelingJob, members: Sequence[tuple[int, int]]) -> Iterator[Assignment]:
    chats = [chat for chat, _ in members]
    if job.chat_set.kind == ChatSet.Kind.CALIBRATION:
        yield from _patterns(job, chats, kind=Kind.CALIBRATION)
        return
    share = 1.0 if job.overlap_share is None else job.overlap_share
    several = orders.shared_out(chats, share=share, seed=job.seed)
    if job.order == LabelingJob.Order.TOPIC:
        ordered = orders.by_topic(members, seed=job.seed)
    else:
        ordered = orders.shuffled(chats, seed=job.seed)
    for position, chat in enumerate(ordered, 1):
        for slot in range(1, job.overlap + 1 if chat in several else 2):
            yield Assignment(job=job, chat_id=chat, slot=slot, position=position)


def _patterns(job: LabelingJob, chats: Sequence[int], *, kind: str) -> list[Assignment]:
    return [
        Assignment(job=job, chat_id=chat, slot=1, position=position, kind=kind)
        for position, chat in enumerate(chats, 1)
    ]


def _gold(
    job: LabelingJob, criteria: Sequence[Criterion], calibration_set: ChatSet | None
) -> list[Assignment]:
    if job.gold_set is None:
        return []
    own_sets = [job.chat_set] if calibration_set is None else [job.chat_set, calibration_set]
    chats = gold_chats(gold_set=job.gold_set, own_sets=own_sets, criteria=criteria)
    if not chats:
        outside = " and ".join(chat_set.name for chat_set in own_sets)
        raise ValidationError(
            {
                "gold_set": f"No chat of {job.gold_set.name} outside {outside} has a known answer: "
                "adjudicate some first."
            }
        )
    return _patterns(job, chats, kind=Kind.GOLD)


def _round_of(
    job: LabelingJob, chat_set: ChatSet, criteria: Sequence[Criterion], raters: Sequence[Rater], team: int
) -> LabelingJob:
    """Create the calibration round: same raters and criteria, every chat of the set for each rater."""
    ending = ": calibration"
    first = LabelingJob(
        chat_set=chat_set,
        name=job.name[: 120 - len(ending)] + ending,
        overlap=team,
        group=job.group,
        guideline=job.guideline,
        created_by=job.created_by,
    )
    members = chat_set.members.order_by("position").values_list("chat_id", "chat__topic_id")
    return _stored(first, criteria, raters, list(_slots(first, list(members))))


# ---------- validation ----------


def _check(job: LabelingJob, *, criteria: Sequence[Criterion], chats: int, team: int) -> None:
    if not chats:
        raise ValidationError({"chat_set": "The chat set is empty."})
    if DataImport.objects.writing_to(job.chat_set.name).exists():
        raise ValidationError({"chat_set": "An import is writing to this chat set. Wait until it ends."})
    if not criteria:
        raise ValidationError({"criteria": "Choose at least one criterion."})
    for criterion in criteria:
        if criterion.rubric_id != job.chat_set.rubric_id or criterion.state != Criterion.State.ACTIVE:
            raise ValidationError({"criteria": f"{criterion.key} is not active in the set's rubric."})
    if not team:
        raise ValidationError({"raters": "Choose raters, or a group with raters."})
    # A rater labels a chat once, so a chat cannot get more labels than there are raters.
    if not 1 <= job.overlap <= team:
        raise ValidationError({"overlap": f"{job.overlap} labels per chat need {job.overlap} raters."})
    if job.due_at is not None and job.due_at <= timezone.now():
        raise ValidationError({"due_at": "The due date is in the past."})
    _check_shares(job, chats)


def _check_shares(job: LabelingJob, chats: int) -> None:
    share = job.overlap_share
    if share is not None and not 0 < share <= 1:
        raise ValidationError({"overlap_share": "The share must be between 0 and 1."})
    if share is not None and (job.overlap == 1 or not round(share * chats)):
        raise ValidationError({"overlap_share": "With this share no chat gets a second label."})
    if not 0 <= job.gold_rate <= 0.5:
        raise ValidationError({"gold_rate": "At most half of the chats can be gold."})
    if (job.gold_set is None) != (job.gold_rate == 0):
        missing = "gold_rate" if job.gold_set else "gold_set"
        raise ValidationError({missing: "Gold chats need a set and a rate."})
    if job.gold_set is not None and job.gold_set.rubric_id != job.chat_set.rubric_id:
        raise ValidationError({"gold_set": f"{job.gold_set.name} belongs to another rubric."})


def _check_round(calibration_set: ChatSet, chat_set: ChatSet) -> None:
    if calibration_set.kind != ChatSet.Kind.CALIBRATION or calibration_set == chat_set:
        raise ValidationError(
            {"calibration_set": f"{calibration_set.name} is not a calibration set other than this set."}
        )
    if calibration_set.rubric_id != chat_set.rubric_id:
        raise ValidationError({"calibration_set": f"{calibration_set.name} belongs to another rubric."})
    if not ChatSetMember.objects.filter(chat_set=calibration_set).exists():
        raise ValidationError({"calibration_set": f"{calibration_set.name} is empty."})


def jobs_sweep() -> None:
    """Tell who opened a job that its labels are all there, once."""
    jobs = {f"job:{job.pk}": job for job in jobs_with_all_labels() if job.created_by_id}
    finished = InboxItem.Kind.FINISHED
    known = InboxItem.objects.filter(kind=finished, subject__in=jobs).values_list("subject", flat=True)
    for subject in jobs.keys() - set(known):
        job = jobs[subject]
        if job.created_by is not None:
            inbox_add(users=[job.created_by], kind=finished, subject=subject)
