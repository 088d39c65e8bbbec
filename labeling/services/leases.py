"""Who holds a chat: taking the next one, holding it, giving it back."""

import uuid
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from django.db import models, transaction
from django.db.models import Count, Max, Q
from django.utils import timezone

from labeling.core.orders import draw, gold_place
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import Rater
from labeling.selectors.labels import EXPIRED
from labeling.selectors.queue import free_slots, open_jobs

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
def assignment_next(*, rater: Rater, job: LabelingJob, ahead: bool = False) -> Assignment | None:
    """The rater's chat in work, else one of the free ones, leased for an hour; None when nothing is left.

    With `ahead` it is the chat after the one in work, so that a screen can fetch it early; a rater holds two
    at most. Asking renews what they hold.

    Gold chats come at the places of the rater's own that `gold_place` draws. Open slots go before those whose
    lease ran out; the loser of such a slot keeps drafts, not the slot. NB: whatever a rater takes is a new
    row with a new id, or ids and their order would tell gold chats from others.
    """
    # One taker at a time a rater: two tabs get the same chat. NB: no_key, or saving a label could deadlock.
    Rater.objects.select_for_update(no_key=True).get(pk=rater.pk)
    if not open_jobs(rater_id=rater.pk).filter(pk=job.pk).exists():
        return None
    now = timezone.now()
    own = Assignment.objects.filter(job=job, rater=rater, state=Assignment.State.LEASED)
    held = [row for row in own.order_by("pk") if _renewed(row, now)]
    if len(held) > ahead:
        return held[ahead]
    free = free_slots(rater_id=rater.pk, now=now).filter(job=job)
    return _take_gold(free=free, job=job, rater=rater, now=now) or _take_free(free=free, rater=rater, now=now)


def _renewed(row: Assignment, now: datetime) -> bool:
    """Whether the lease could be renewed; another rater may just have taken it over."""
    row.lease_expires_at = now + LEASE
    same = Assignment.objects.filter(pk=row.pk, lease_token=row.lease_token)
    return bool(same.update(lease_expires_at=row.lease_expires_at))


def _take_gold(
    *, free: models.QuerySet[Assignment], job: LabelingJob, rater: Rater, now: datetime
) -> Assignment | None:
    """A gold chat where one is due, and other chats are left to mix it into."""
    if not job.gold_rate:
        return None
    own = Assignment.objects.filter(job=job, rater=rater)
    had = own.aggregate(taken=Count("pk"), gold=Count("pk", filter=Q(kind=Assignment.Kind.GOLD)))
    place = gold_place(had["gold"], rate=job.gold_rate, seed=job.seed, rater=rater.pk)
    if had["taken"] < place or not free.exclude(kind=Assignment.Kind.GOLD).exists():
        return None
    patterns = list(free.filter(kind=Assignment.Kind.GOLD))
    if not patterns:
        return None
    pattern = min(patterns, key=lambda row: draw(job.seed, "which", rater.pk, row.chat_id))
    return _copied(pattern, rater=rater, now=now)


def _take_free(*, free: models.QuerySet[Assignment], rater: Rater, now: datetime) -> Assignment | None:
    """The first free slot that nobody else is just taking; waits for those only when there is no other.

    Without the waiting a rater could leave empty-handed while the one they were passed over for lets go.
    """
    wanted = free.exclude(kind=Assignment.Kind.GOLD).order_by("position", "slot")
    states = (Assignment.State.OPEN, Assignment.State.LEASED)
    for wait, state in product((False, True), states):
        slots = wanted.filter(state=state)
        if slot := slots.select_for_update(skip_locked=not wait).first():
            return _taken(slot, rater=rater, now=now)
    return None


def _taken(slot: Assignment, *, rater: Rater, now: datetime) -> Assignment:
    """The locked slot as a new row of the rater's."""
    if slot.kind != Assignment.Kind.NORMAL:
        return _copied(slot, rater=rater, now=now)
    rows = Assignment.objects.filter(pk=slot.pk)
    if slot.state == Assignment.State.OPEN:
        rows.delete()
    else:
        rows.update(
            state=Assignment.State.SKIPPED, skip_reason=EXPIRED, lease_token=None, lease_expires_at=None
        )
    _forget_lost(slot=slot, rater=rater)
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
    }


def _forget_lost(*, slot: Assignment, rater: Rater) -> None:
    """Make room for a second try: a rater may hold one row a chat, and an old one may be a lost lease."""
    Assignment.objects.filter(
        job_id=slot.job_id,
        chat_id=slot.chat_id,
        rater=rater,
        state=Assignment.State.SKIPPED,
        skip_reason=EXPIRED,
    ).update(rater=None)


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
