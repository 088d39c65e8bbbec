"""Who holds a chat: taking the next one, holding it, giving it back."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db import models, transaction
from django.utils import timezone

from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import Rater
from labeling.selectors.labels import EXPIRED, free_slots

LEASE = timedelta(minutes=60)


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
        "submitted": "A submitted answer can be changed, not cleared.",
        "client_id_used": "This client_id was used for another answer.",
    }

    def __init__(self, code: str) -> None:
        super().__init__(self.MESSAGES[code])
        self.code = code


@transaction.atomic
def assignment_next(*, rater: Rater, job: LabelingJob) -> Assignment | None:
    """The rater's chat in work, else the next free slot, leased for an hour; None when nothing is left.

    Open slots go first, then those whose lease ran out. The loser of such a slot keeps drafts, not the slot.
    """
    # One taker at a time a rater: two tabs get the same chat. NB: no_key, or saving a label could deadlock.
    Rater.objects.select_for_update(no_key=True).get(pk=rater.pk)
    now = timezone.now()
    own = Assignment.objects.filter(
        job=job,
        rater=rater,
        state=Assignment.State.LEASED,
        job__state=LabelingJob.State.OPEN,
        job__raters=rater,
    )
    if mine := own.order_by("position").first():
        Assignment.objects.filter(pk=mine.pk, state=Assignment.State.LEASED).update(
            lease_expires_at=now + LEASE
        )
        return mine
    free = free_slots(rater_id=rater.pk, now=now).filter(job=job).order_by("position", "slot")
    return _take_open(free=free, rater=rater, now=now) or _take_expired(free=free, rater=rater, now=now)


def _lease(now: datetime) -> dict[str, Any]:
    return {
        "state": Assignment.State.LEASED,
        "lease_token": uuid.uuid4(),
        "lease_expires_at": now + LEASE,
    }


def _first_unlocked(slots: models.QuerySet[Assignment]) -> Assignment | None:
    return slots.select_for_update(skip_locked=True, of=("self",)).first()


def _take_open(*, free: models.QuerySet[Assignment], rater: Rater, now: datetime) -> Assignment | None:
    while slot := _first_unlocked(free.filter(state=Assignment.State.OPEN)):
        _forget_lost(slot=slot, rater=rater)
        still_open = Assignment.objects.filter(pk=slot.pk, state=Assignment.State.OPEN)
        if still_open.update(rater=rater, **_lease(now)):
            return Assignment.objects.get(pk=slot.pk)
    return None


def _take_expired(*, free: models.QuerySet[Assignment], rater: Rater, now: datetime) -> Assignment | None:
    while slot := _first_unlocked(free.filter(state=Assignment.State.LEASED)):
        same_lease = Assignment.objects.filter(
            pk=slot.pk, lease_token=slot.lease_token, lease_expires_at__lt=now
        )
        if same_lease.update(
            state=Assignment.State.SKIPPED, skip_reason=EXPIRED, lease_token=None, lease_expires_at=None
        ):
            _forget_lost(slot=slot, rater=rater)
            return _reopened(slot, rater=rater, **_lease(now))
    return None


def _forget_lost(*, slot: Assignment, rater: Rater) -> None:
    """Make room for a second try: a rater may hold one row a chat, and an old one may be a lost lease."""
    Assignment.objects.filter(
        job_id=slot.job_id,
        chat_id=slot.chat_id,
        rater=rater,
        state=Assignment.State.SKIPPED,
        skip_reason=EXPIRED,
    ).update(rater=None)


def _reopened(slot: Assignment, **fields: Any) -> Assignment:
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
    """Give the chat back: its slot opens for another rater, drafts stay. A second time changes nothing."""
    row = assignment_locked(assignment=assignment, rater=rater)
    if row.state == Assignment.State.SKIPPED and row.skip_reason != EXPIRED:
        return row
    check_held(row)
    if row.state == Assignment.State.SUBMITTED:
        raise Conflict("submitted")
    row.state, row.skip_reason = Assignment.State.SKIPPED, reason
    row.lease_token = row.lease_expires_at = None
    row.save(update_fields=["state", "skip_reason", "lease_token", "lease_expires_at"])
    _reopened(row)
    return row
