"""Leases on chats: get the next chat, extend the lease, skip the chat."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, models, transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from labeling.jobs.core import gold_place, seeded_random
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
# A younger lease is not renewed: it does not expire soon, so no write is needed.
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
        "lease_lost": "Your time for this chat expired and another rater has it now. Your drafts are kept.",
        "skipped": "You skipped this chat.",
        "job_closed": "The labelling job is closed.",
        "nothing_asked": "All criteria of this labelling job are retired, so there is nothing to submit.",
        "round_first": "Finish the calibration round of this job first.",
        "submitted": "A submitted answer can be changed but not cleared.",
        "client_id_used": "This client_id belongs to another answer.",
    }

    def __init__(self, code: str) -> None:
        super().__init__(self.MESSAGES[code])
        self.code = code


@transaction.atomic
def assignment_next(*, rater: Rater, job: LabelingJob, ahead: bool = False) -> Assignment | None:
    """Return the rater's chat in work, else lease a free one for an hour; None when none is left.

    With `ahead` return the chat after the one in work, so that the screen can fetch it early. A rater holds
    at most two chats, and only one while a second would leave another rater without a chat. Each call renews
    the rater's leases.

    Gold chats come at the rater's own positions from `gold_place`. Open slots come before slots with an
    expired lease; a rater who loses such a slot keeps the drafts. NB: each lease is a new row with a new id,
    so that ids do not reveal gold chats.

    Raises Conflict while the rater has unfinished chats of the job's calibration round.
    """
    now = timezone.now()
    if not _taker(job.pk, rater.pk)[0].may:
        return None
    leased = [row for row in _leased(job.pk, rater.pk) if _keeps_lease(row, now)]
    if len(leased) > ahead:
        return leased[ahead]
    if held_up(jobs=[job], rater=rater):
        raise Conflict("round_first")
    gold = _take_gold(job=job, rater=rater, now=now)
    return gold or _take_free(job=job, rater=rater, now=now, alone=not leased)


@prepared
def _taker(job: int, rater: int) -> models.QuerySet[Any]:
    """Lock the rater, so that two tabs get the same chat; `may` = they can get chats of the job."""
    mine = open_jobs(rater_id=rater).filter(pk=job)
    # NB: no_key, or saving a label could deadlock.
    taker = Rater.objects.select_for_update(no_key=True).filter(pk=rater)
    return taker.annotate(may=Exists(mine)).only("pk")


@prepared
def _leased(job: int, rater: int) -> models.QuerySet[Assignment]:
    """Return the rater's chats in work in the job."""
    return Assignment.objects.filter(job=job, rater=rater, state=Assignment.State.LEASED).order_by("pk")


def _keeps_lease(row: Assignment, now: datetime) -> bool:
    """Whether the rater still has the lease; renew it where it expires soon."""
    until = row.lease_expires_at
    return (until is not None and until > now + LEASE - RENEWED_AFTER) or _renewed(row, now)


def _renewed(row: Assignment, now: datetime) -> bool:
    """Renew the lease; False where another rater has the slot by now."""
    row.lease_expires_at = now + LEASE
    same = Assignment.objects.filter(pk=row.pk, lease_token=row.lease_token)
    return bool(same.update(lease_expires_at=row.lease_expires_at))


def _take_gold(*, job: LabelingJob, rater: Rater, now: datetime) -> Assignment | None:
    """Lease a gold chat where one is due and other free chats remain."""
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
    pattern = min(patterns, key=lambda row: seeded_random(job.seed, "which", rater.pk, row.chat_id))
    return _copied(pattern, rater=rater, now=now)


def _take_free(*, job: LabelingJob, rater: Rater, now: datetime, alone: bool) -> Assignment | None:
    """Lease a free slot of the job; `alone` = the rater has no chat of it in work."""
    # First search after the rater's last chat: scanning from the start would be slow.
    slot = next(iter(_onwards(job.pk, rater.pk)), None) or _first_free(job, rater, now=now, wait=alone)
    if slot is None or (not alone and _starves(slot)):
        return None
    return _lease_slot(slot, rater=rater, now=now)


def _first_free(job: LabelingJob, rater: Rater, *, now: datetime, wait: bool) -> Assignment | None:
    """Lock the first free slot that no other rater is locking; with `wait`, finally wait for a locked one.

    Without waiting, a rater might get no chat although the other one releases the slot.
    NB: a rater with a chat in work must not wait, or two raters could deadlock.
    """
    # Check once first: a rater who has finished the job would scan all of its slots.
    if not free_slots(rater_id=rater.pk, now=now).filter(job=job).exists():
        return None
    opened = _opened(job.pk, rater.pk)
    ran_out = _untouched(job.pk, rater.pk).filter(RAN_OUT, lease_expires_at__lt=now)
    tries = [(opened, True), (ran_out, True)]
    if wait and connection.features.has_select_for_update_skip_locked:
        tries += [(opened, False), (ran_out, False)]
    locked = (slots.select_for_update(skip_locked=skip).first() for slots, skip in tries)
    return next(filter(None, locked), None)


def _untouched(job: int, rater: int) -> models.QuerySet[Assignment]:
    return Assignment.objects.filter(~touched(rater_id=rater), job=job).order_by("position", "slot")


def _opened(job: int, rater: int) -> models.QuerySet[Assignment]:
    return _untouched(job, rater).filter(state=Assignment.State.OPEN).exclude(kind=Assignment.Kind.GOLD)


@prepared
def _onwards(job: int, rater: int) -> models.QuerySet[Assignment]:
    """Lock the first open slot after the chat that the rater submitted last."""
    submitted = Assignment.objects.filter(job=job, rater=rater, state=Assignment.State.SUBMITTED)
    newest = submitted.exclude(kind=Assignment.Kind.GOLD).order_by("-pk").values("position")[:1]
    onwards = _opened(job, rater).filter(position__gt=Coalesce(Subquery(newest), 0))
    return onwards.select_for_update(skip_locked=True)[:1]


def _starves(slot: Assignment) -> bool:
    """Whether leasing this slot ahead could leave another rater of the job without a chat."""
    if slot.kind != Assignment.Kind.NORMAL:
        return False
    rows = Assignment.objects.filter(job=slot.job_id)
    at_work = rows.filter(rater=OuterRef("pk"), state=Assignment.State.LEASED)
    idle = raters_of(job_id=slot.job_id).filter(~Exists(at_work)).count()
    return rows.filter(state=Assignment.State.OPEN, kind=slot.kind)[: idle + 1].count() <= idle


def _lease_slot(slot: Assignment, *, rater: Rater, now: datetime) -> Assignment:
    """Replace the locked slot by a new row of the rater."""
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
    """Create the rater's own slot of a chat that every rater gets."""
    # One at a time per chat, because the slot number counts up.
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
    """Lock the rater's assignment, which serialises their changes to one chat."""
    rows = Assignment.objects.select_for_update(of=("self",)).select_related("job", "chat")
    return rows.get(pk=assignment.pk, rater=rater)


def check_held(row: Assignment) -> None:
    """Raise Conflict where the rater may no longer write to the chat."""
    if row.state == Assignment.State.SKIPPED:
        raise Conflict("lease_lost" if row.skip_reason == EXPIRED else "skipped")
    if row.job.state != LabelingJob.State.OPEN:
        raise Conflict("job_closed")


@transaction.atomic
def lease_extend(*, assignment: Assignment, rater: Rater) -> Assignment:
    """Extend the lease by an hour. Raises Conflict where the chat is lost, skipped, submitted or closed."""
    row = assignment_locked(assignment=assignment, rater=rater)
    check_held(row)
    if row.state == Assignment.State.SUBMITTED:
        raise Conflict("submitted")
    row.lease_expires_at = timezone.now() + LEASE
    row.save(update_fields=["lease_expires_at"])
    return row


@transaction.atomic
def assignment_skip(*, assignment: Assignment, rater: Rater, reason: str) -> Assignment:
    """Skip the chat: its slot opens for another rater, drafts stay. Repeating it changes nothing.

    The rater's own slot of a gold or calibration chat does not open again.
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
