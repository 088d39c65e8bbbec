"""Triage of misalignments: cause, note, owner, and the way back."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from alignment.models.misalignments import Misalignment, TriageChange
from common.problems import InputProblem
from labeling.models.people import User

LONGEST = 4_000  # characters of a note
# What was done longer ago is no slip of the hand.
TAKEN_BACK_WITHIN = timedelta(hours=12)
_State = Misalignment.State


@dataclass(frozen=True, slots=True)
class Triage:
    """What is to change; None leaves it. `owner` is a user's name, '' for nobody, `cause` '' for none yet."""

    cause: str | None = None
    note: str | None = None
    owner: str | None = None


class ChangedMeanwhile(InputProblem):
    """Somebody else triaged it after this person read it; nothing was written."""


class NothingToUndo(InputProblem):
    """The person changed nothing lately that still stands."""


@transaction.atomic
def misalignment_triage(*, misalignment_id: int, change: Triage, seen: int, by: User) -> Misalignment:
    """Store a cause, note or owner, and who changed what. What is closed stays closed.

    `seen` is the revision that was read. Raises ChangedMeanwhile where it is another by now, and InputProblem
    where the owner may not triage.
    """
    item = _locked(misalignment_id)
    if item.revision != seen:
        who, where = (item.changed_by.username if item.changed_by else "somebody"), ""
        if item.changed_by == by:
            who, where = "you", " in another window"
        raise ChangedMeanwhile(f"{who} changed this one{where} meanwhile; yours is not stored")
    return _changed(item, change, by=by)


@transaction.atomic
def misalignment_undo(*, among: QuerySet[Misalignment], by: User) -> Misalignment:
    """Take back what this person changed last, of the items `among`; called again, the change before it.

    What somebody else has changed since, what was taken back before and what is older than 12 hours is left
    out. Raises NothingToUndo where nothing is left.
    """
    User.objects.select_for_update().get(pk=by.pk)  # two calls at once take back two changes, not one twice
    later = TriageChange.objects.filter(misalignment=OuterRef("misalignment"), pk__gt=OuterRef("pk"))
    last = (
        TriageChange.objects.filter(by=by, undoes=None, at__gte=timezone.now() - TAKEN_BACK_WITHIN)
        .exclude(Exists(TriageChange.objects.filter(undoes=OuterRef("pk"))))
        .exclude(Exists(later.exclude(by=by)))
        .filter(Exists(among.filter(pk=OuterRef("misalignment"))))
        .order_by("-pk")
        .first()
    )
    if last is None:
        raise NothingToUndo("nothing of yours is left to take back")
    return _changed(_locked(last.misalignment_id), Triage(**last.was), by=by, undoes=last)


def _locked(pk: int) -> Misalignment:
    rows = Misalignment.objects.select_for_update(of=("self",)).select_related("changed_by", "owner")
    return rows.get(pk=pk)


def _changed(
    item: Misalignment, change: Triage, *, by: User, undoes: TriageChange | None = None
) -> Misalignment:
    was = _as_told(item)
    if change.cause is not None:
        item.cause = change.cause
    if change.note is not None:
        item.note = change.note
    if change.owner is not None:
        item.owner = _owner(change.owner, known=undoes is not None)
    if item.state != _State.CLOSED:
        item.state = _State.TRIAGED if item.cause else _State.OPEN
    item.revision, item.changed_by, item.changed_at = item.revision + 1, by, timezone.now()
    item.save()
    now = _as_told(item)
    differ = [name for name in now if now[name] != was[name]]
    if differ or undoes:
        TriageChange.objects.create(
            misalignment=item,
            number=item.revision,
            was={name: was[name] for name in differ},
            now={name: now[name] for name in differ},
            by=by,
            at=item.changed_at,
            undoes=undoes,
        )
    return item


def _as_told(item: Misalignment) -> dict[str, Any]:
    owner = item.owner.username if item.owner else ""
    return {"cause": item.cause, "note": item.note, "owner": owner}


def _owner(name: str, *, known: bool) -> User | None:
    """Who triages; one who owned it before may get it back, where they still go by that name."""
    user = User.objects.filter(username=name).first() if name else None
    if known or not name:
        return user
    if user is None or not (user.is_active and user.has_perm("labeling.edit_prompts")):
        raise InputProblem("an owner is somebody who may change prompts")
    return user
