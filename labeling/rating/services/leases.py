"""Who holds a chat: taking the next one, holding it, giving it back."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, models, transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from labeling.jobs.core import draw, gold_place
from labeling.models.labels import EXPIRED, Assignment, LabelingJob
from labeling.models.people import Rater
from labeling.rating.queries.prepared import prepared
from labeling.rating.queries.queue import (
    LOST,
    RAN_OUT,
    free_gold,
    free_slots,
    held_up,
    open_jobs,
    raters_of,
    touched,
)

LEASE = timedelta(minutes=60)
# A younger lease nobody can take over for a while: no need to write.
RENEWED_AFTER = timedelta(minutes=5)


class SkipReason(models.TextChoices):
    """Why a rater can't label a chat."""

    TOO_LONG = "too_long", "Too long"
    OTHER_LANGUAGE = "other_language", "A language I don’t read"
    MISSING_CONTEXT = "missing_context", "Something needed is missing"
    HARMFUL = "harmful", "Harmful content"
    UNCLEAR_RUBRIC = "unclear_rubric", "The criteria don’t fit it"
    OTHER = "other", "Something else"


class Conflict(Exception):
    """The assignment is not in a state for this; `code` names why."""

    MESSAGES = {
        "lease_lost": "The time for this chat ran out and it went to another rater. Your drafts are kept.",
        "skipped": "You skipped this chat.",
        "job_closed": "The labelling job is closed.",
        "nothing_asked": "Every criterion of the labelling job is retired: there is nothing to submit.",
        "round_first": "The calibration round of this job comes first: label all of its chats.",
        "submitted": "A submitted answer can be changed, not cleared.",
        "client_id_used": "This client_id was used for another answer.",
    }

    def __init__(self, code: str) -> None:
        super().__init__(self.MESSAGES[code])
        self.code = code


@transaction.atomic
def assignment_next(*, rater: Rater, job: LabelingJob, ahead: bool = False) -> Assignment | None:
    """The rater's chat in work, else one of the free ones, leased for an hour; None when nothing is left.

    With `ahead` it is the chat after the one in work, so that a screen can fetch it early; a rater holds two
    at most, and only one while another rater could go away empty for it. Asking renews what they hold.

    Gold chats come at the places of the rater's own that `gold_place` draws. Open slots go before those whose
    lease ran out; the loser of such a slot keeps drafts, not the slot. NB: whatever a rater takes is a new
    row with a new id, or ids and their order would tell gold chats from others.

    Raises Conflict while the rater has chats of the job's calibration round left.
    """
    now = timezone.now()
    if not _taker(job.pk, rater.pk)[0].may:
        return None
    held = [row for row in _leased(job.pk, rater.pk) if _held(row, now)]
    if len(held) > ahead:
        return held[ahead]
    if held_up(jobs=[job], rater=rater):
        raise Conflict("round_first")
    gold = _take_gold(job=job, rater=rater, now=now)
    return gold or _take_free(job=job, rater=rater, now=now, alone=not held)


@prepared
def _taker(job: int, rater: int) -> models.QuerySet[Any]:
    """The rater, locked, and whether they `may` take chats of the job: two tabs get the same chat."""
    mine = open_jobs(rater_id=rater).filter(pk=job)
    # NB: no_key, or saving a label could deadlock.
    taker = Rater.objects.select_for_update(no_key=True).filter(pk=rater)
    return taker.annotate(may=Exists(mine)).only("pk")


@prepared
def _leased(job: int, rater: int) -> models.QuerySet[Assignment]:
    """What the rater has in work in the job."""
    return Assignment.objects.filter(job=job, rater=rater, state=Assignment.State.LEASED).order_by("pk")


def _held(row: Assignment, now: datetime) -> bool:
    """Whether the rater has the chat still; renewed where another rater might take it over soon."""
    until = row.lease_expires_at
    return (until is not None and until > now + LEASE - RENEWED_AFTER) or _renewed(row, now)


def _renewed(row: Assignment, now: datetime) -> bool:
    """Whether the lease could be renewed; another rater may just have taken it over."""
    row.lease_expires_at = now + LEASE
    same = Assignment.objects.filter(pk=row.pk, lease_token=row.lease_token)
    return bool(same.update(lease_expires_at=row.lease_expires_at))


def _take_gold(*, job: LabelingJob, rater: Rater, now: datetime) -> Assignment | None:
    """A gold chat where one is due, and other chats are left to mix it into."""
    if not job.gold_rate:
        return None
    own = Assignment.objects.filter(job=job, rater=rater).exclude(LOST)
    had = own.aggregate(taken=Count("pk"), gold=Count("pk", filter=Q(kind=Assignment.Kind.GOLD)))
    place = gold_place(had["gold"], rate=job.gold_rate, seed=job.seed, rater=rater.pk)
    if had["taken"] < place or not free_slots(rater_id=rater.pk, now=now).filter(job=job).exists():
        return None
    patterns = list(free_gold(rater_id=rater.pk).filter(job=job))
    if not patterns:
        return None
    pattern = min(patterns, key=lambda row: draw(job.seed, "which", rater.pk, row.chat_id))
    return _copied(pattern, rater=rater, now=now)


def _take_free(*, job: LabelingJob, rater: Rater, now: datetime, alone: bool) -> Assignment | None:
    """A free slot of the job; `alone` where the rater has no chat of it in work."""
    # Onwards first, or a rater far ahead of the others would walk past all their own chats each time.
    slot = next(iter(_onwards(job.pk, rater.pk)), None) or _passed(job, rater, now=now, wait=alone)
    if slot is None or (not alone and _starves(slot)):
        return None
    return _taken(slot, rater=rater, now=now)


def _passed(job: LabelingJob, rater: Rater, *, now: datetime, wait: bool) -> Assignment | None:
    """The first free slot that nobody else is just taking; with `wait`, at last one that somebody is.

    Without the waiting a rater could leave empty-handed while the one they were passed over for lets go.
    NB: who holds a chat may not wait, or two of them could wait for each other's.
    """
    # Who is through with a job asks for all of its slots: once is enough.
    if not free_slots(rater_id=rater.pk, now=now).filter(job=job).exists():
        return None
    opened = _opened(job.pk, rater.pk)
    ran_out = _wanted(job.pk, rater.pk).filter(RAN_OUT, lease_expires_at__lt=now)
    tries = [(opened, True), (ran_out, True)]
    if wait and connection.features.has_select_for_update_skip_locked:
        tries += [(opened, False), (ran_out, False)]
    locked = (slots.select_for_update(skip_locked=skip).first() for slots, skip in tries)
    return next(filter(None, locked), None)


def _wanted(job: int, rater: int) -> models.QuerySet[Assignment]:
    return Assignment.objects.filter(~touched(rater_id=rater), job=job).order_by("position", "slot")


def _opened(job: int, rater: int) -> models.QuerySet[Assignment]:
    return _wanted(job, rater).filter(state=Assignment.State.OPEN).exclude(kind=Assignment.Kind.GOLD)


@prepared
def _onwards(job: int, rater: int) -> models.QuerySet[Assignment]:
    """The first open slot behind the chat that the rater submitted last; locked."""
    submitted = Assignment.objects.filter(job=job, rater=rater, state=Assignment.State.SUBMITTED)
    newest = submitted.exclude(kind=Assignment.Kind.GOLD).order_by("-pk").values("position")[:1]
    onwards = _opened(job, rater).filter(position__gt=Coalesce(Subquery(newest), 0))
    return onwards.select_for_update(skip_locked=True)[:1]


def _starves(slot: Assignment) -> bool:
    """Whether taking the slot ahead could leave a rater of the job without a chat."""
    if slot.kind != Assignment.Kind.NORMAL:
        return False
    rows = Assignment.objects.filter(job=slot.job_id)
    at_work = rows.filter(rater=OuterRef("pk"), state=Assignment.State.LEASED)
    idle = raters_of(job_id=slot.job_id).filter(~Exists(at_work)).count()
    return rows.filter(state=Assignment.State.OPEN, kind=slot.kind)[: idle + 1].count() <= idle


def _taken(slot: Assignment, *, rater: Rater, now: datetime) -> Assignment:
    """The locked slot as a new row of the rater's."""
    if slot.kind != Assignment.Kind.NORMAL:
        return _copied(slot, rater=rater, now=now)
    rows = Assignment.objects.filter(pk=slot.pk)
    if slot.state == Assignment.State.OPEN:
        # NB: delete() would first look for labels, which an open slot cannot have.
        rows._raw_delete(rows.db)
    else:
        rows.update(
            state=Assignment.State.SKIPPED, skip_reason=EXPIRED, lease_token=None, lease_expires_at=None
        )
    return _again(slot, **_lease(rater, now))


def _copied(pattern: Assignment, *, rater: Rater, now: datetime) -> Assignment:
    """The rater's own slot of a chat that every rater gets."""
    # One at a time a chat: the slot's number is the next one.
    Assignment.objects.select_for_update().get(pk=pattern.pk)
    slots = Assignment.objects.filter(job_id=pattern.job_id, chat_id=pattern.chat_id)
    pattern.slot = slots.aggregate(last=Max("slot"))["last"] + 1
    return _again(pattern, **_lease(rater, now))


def _lease(rater: Rater, now: datetime) -> dict[str, Any]:
    return {
        "rater": rater,
        "state": Assignment.State.LEASED,
        "lease_token": uuid.uuid4(),
        "lease_expires_at": now + LEASE,
        "taken_at": now,
    }


def _again(slot: Assignment, **fields: Any) -> Assignment:
    return Assignment.objects.create(
        job_id=slot.job_id,
        chat_id=slot.chat_id,
        slot=slot.slot,
        position=slot.position,
        kind=slot.kind,
        **fields,
    )


def assignment_locked(*, assignment: Assignment, rater: Rater) -> Assignment:
    """The rater's row, locked: all changes of one chat by one rater happen one after the other."""
    rows = Assignment.objects.select_for_update(of=("self",)).select_related("job", "chat")
    return rows.get(pk=assignment.pk, rater=rater)


def check_held(row: Assignment) -> None:
    """Raise Conflict where the rater can't write to the chat any more."""
    if row.state == Assignment.State.SKIPPED:
        raise Conflict("lease_lost" if row.skip_reason == EXPIRED else "skipped")
    if row.job.state != LabelingJob.State.OPEN:
        raise Conflict("job_closed")


@transaction.atomic
def lease_extend(*, assignment: Assignment, rater: Rater) -> Assignment:
    """Hold the chat for another hour. Raises Conflict where it is lost, given back, submitted or closed."""
    row = assignment_locked(assignment=assignment, rater=rater)
    check_held(row)
    if row.state == Assignment.State.SUBMITTED:
        raise Conflict("submitted")
    row.lease_expires_at = timezone.now() + LEASE
    row.save(update_fields=["lease_expires_at"])
    return row


@transaction.atomic
def assignment_skip(*, assignment: Assignment, rater: Rater, reason: str) -> Assignment:
    """Give the chat back: its slot opens for another rater, drafts stay. A second time changes nothing.

    A slot of the rater's own, of a gold or a calibration chat, just ends.
    """
    row = assignment_locked(assignment=assignment, rater=rater)
    if row.state == Assignment.State.SKIPPED and row.skip_reason != EXPIRED:
        return row
    check_held(row)
    if row.state == Assignment.State.SUBMITTED:
        raise Conflict("submitted")
    row.state, row.skip_reason = Assignment.State.SKIPPED, reason
    row.lease_token = row.lease_expires_at = None
    row.save(update_fields=["state", "skip_reason", "lease_token", "lease_expires_at"])
    if row.kind == Assignment.Kind.NORMAL:
        _again(row)
    return row
