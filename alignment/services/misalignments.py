"""Triage of misalignments: cause, note, owner."""

from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from alignment.models.misalignments import Misalignment
from labeling.core.problems import InputProblem
from labeling.models.people import User

LONGEST = 4_000  # characters of a note
_State = Misalignment.State


@dataclass(frozen=True, slots=True)
class Triage:
    """What is to change; None leaves it. `owner` is a user's name, '' for nobody, `cause` '' for none yet."""

    cause: str | None = None
    note: str | None = None
    owner: str | None = None


class ChangedMeanwhile(InputProblem):
    """Somebody else triaged it after this person read it; nothing was written."""


@transaction.atomic
def misalignment_triage(*, misalignment_id: int, change: Triage, seen: int, by: User) -> Misalignment:
    """Store a cause, note or owner. What is closed stays closed.

    `seen` is the revision that was read. Raises ChangedMeanwhile where it is another by now, and InputProblem
    where the owner may not triage.
    """
    item = (
        Misalignment.objects.select_for_update(of=("self",))
        .select_related("changed_by")
        .get(pk=misalignment_id)
    )
    if item.revision != seen:
        who = item.changed_by.username if item.changed_by else "somebody"
        raise ChangedMeanwhile(f"{who} changed this one meanwhile; yours is not stored")
    if change.cause is not None:
        item.cause = change.cause
    if change.note is not None:
        item.note = change.note
    if change.owner is not None:
        item.owner = _owner(change.owner)
    if item.state != _State.CLOSED:
        item.state = _State.TRIAGED if item.cause else _State.OPEN
    item.revision, item.changed_by, item.changed_at = seen + 1, by, timezone.now()
    item.save()
    return item


def _owner(name: str) -> User | None:
    if not name:
        return None
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None or not user.has_perm("labeling.edit_prompts"):
        raise InputProblem("an owner is somebody who may change prompts")
    return user
