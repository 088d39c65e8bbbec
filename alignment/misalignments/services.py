"""Triage of disagreements (cause, note, owner, undo), and the scan of small runs on request."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from alignment.misalignments.queries.runs import RESCAN_ON_REQUEST_AFTER, is_small, runs_waiting
from alignment.misalignments.worker import misalignments_refresh
from alignment.models.misalignments import Misalignment, TriageChange
from common.inbox.services import Kind, inbox_add, mentions
from common.inbox.subjects import subjects_open_to
from common.problems import FieldProblem, InputProblem
from labeling.models.people import User

LONGEST = 4_000  # characters of a note
# Older changes cannot be undone.
UNDO_WITHIN = timedelta(hours=12)
# Runs that one request scans at most.
RUNS_PER_REQUEST = 3
_State = Misalignment.State


@dataclass(frozen=True, slots=True)
class Triage:
    """Values to store; None keeps the stored one. `owner` is a username, '' for none; `cause` '' for none."""

    cause: str | None = None
    note: str | None = None
    owner: str | None = None


class ChangedMeanwhile(InputProblem):
    """The item changed after the user read it, so the change was rejected."""


class NothingToUndo(InputProblem):
    """The user has no recent change that can be undone."""


@transaction.atomic
def misalignment_triage(*, misalignment_id: int, change: Triage, seen: int, by: User) -> Misalignment:
    """Store a cause, note or owner, and record the change. A closed item stays closed.

    `seen` is the revision that the user read. Raises ChangedMeanwhile if the item has another one now, and
    InputProblem if the owner may not triage.
    """
    item = _locked(misalignment_id)
    if item.revision != seen:
        who, where = (item.changed_by.username if item.changed_by else "somebody"), ""
        if item.changed_by == by:
            who, where = "you", " in another window"
        raise ChangedMeanwhile(f"{who} changed this disagreement{where}; your change was not saved")
    return _store(item, change, by=by)


@transaction.atomic
def misalignment_undo(*, among: QuerySet[Misalignment], by: User) -> Misalignment:
    """Undo the user's last change to one of the items `among`; a second call undoes the change before it.

    Skips changes that somebody else has overwritten, changes undone before, and changes older than 12 hours.
    Raises NothingToUndo if no change is left.
    """
    User.objects.select_for_update().get(pk=by.pk)  # so that two calls at once undo two changes
    later = TriageChange.objects.filter(misalignment=OuterRef("misalignment"), pk__gt=OuterRef("pk"))
    last = (
        TriageChange.objects.filter(by=by, undoes=None, at__gte=timezone.now() - UNDO_WITHIN)
        .exclude(Exists(TriageChange.objects.filter(undoes=OuterRef("pk"))))
        .exclude(Exists(later.exclude(by=by)))
        .filter(Exists(among.filter(pk=OuterRef("misalignment"))))
        .order_by("-pk")
        .first()
    )
    if last is None:
        raise NothingToUndo("no change of yours in the last 12 hours can be undone")
    return _store(_locked(last.misalignment_id), Triage(**last.was), by=by, undoes=last)


def _locked(pk: int) -> Misalignment:
    rows = Misalignment.objects.select_for_update(of=("self",)).select_related("changed_by", "owner")
    return rows.get(pk=pk)


def _store(
    item: Misalignment, change: Triage, *, by: User, undoes: TriageChange | None = None
) -> Misalignment:
    was, subject = _values(item), f"disagreement:{item.pk}"
    if change.cause is not None:
        item.cause = change.cause
    if change.note is not None:
        item.note = change.note
    if change.owner is not None:
        item.owner = _owner(change.owner, known=undoes is not None, subject=subject)
    if item.state != _State.CLOSED:
        item.state = _State.TRIAGED if item.cause else _State.OPEN
    item.revision, item.changed_by, item.changed_at = item.revision + 1, by, timezone.now()
    item.save()
    now = _values(item)
    changed = [name for name in now if now[name] != was[name]]
    if changed or undoes:
        TriageChange.objects.create(
            misalignment=item,
            number=item.revision,
            was={name: was[name] for name in changed},
            now={name: now[name] for name in changed},
            by=by,
            at=item.changed_at,
            undoes=undoes,
        )
    if "owner" in changed and item.owner:
        inbox_add(users=[item.owner], kind=Kind.ASSIGNED, subject=subject, by=by)
    if "note" in changed and undoes is None:
        _tell_mentioned(item, earlier=was["note"], by=by)
    return item


def _tell_mentioned(item: Misalignment, *, earlier: str, by: User) -> None:
    """Tell who is mentioned in the note and was not before. Raises FieldProblem if one cannot open it."""
    subject = f"disagreement:{item.pk}"
    try:
        known = {one.pk for one in mentions(earlier, subject="")}
        new = [one for one in mentions(item.note, subject=subject) if one.pk not in known]
    except FieldProblem as problem:
        raise FieldProblem("note", problem.message) from problem
    inbox_add(users=new, kind=Kind.MENTIONED, subject=subject, by=by)


def _values(item: Misalignment) -> dict[str, Any]:
    owner = item.owner.username if item.owner else ""
    return {"cause": item.cause, "note": item.note, "owner": owner}


def _owner(name: str, *, known: bool, subject: str) -> User | None:
    """The user of this name, who has to be allowed to triage; an owner restored by an undo need not be."""
    user = User.objects.filter(username=name).first() if name else None
    if known or not name:
        return user
    if user is None or not (user.is_active and user.has_perm("labeling.edit_prompts")):
        raise InputProblem("the owner must be an active user who may edit prompts")
    if subject not in subjects_open_to(user, [subject]):
        raise InputProblem(f"{name} cannot open this chat")
    return user


def small_runs_refresh(*, run: int = 0) -> bool:
    """Scan a few small runs that still wait, or only the run of this id. Whether any was scanned.

    The worker scans every run; this is for a user who does not want to wait for it.
    """
    waiting = runs_waiting(after=RESCAN_ON_REQUEST_AFTER)
    waiting = waiting.filter(pk=run) if run else waiting
    small = [one for one in waiting[:RUNS_PER_REQUEST] if is_small(one)]
    for one in small:
        misalignments_refresh(one)
    return bool(small)
