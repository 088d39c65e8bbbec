"""Notes of raters: added beside the labels, settled by those they are for."""

import uuid
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from common.problems import FieldProblem
from labeling.models.labels import Assignment, RaterNote
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit
from labeling.rating.services.leases import Conflict
from labeling.rubric.queries.criteria import version_read

MOST = 200  # notes of one rater on one chat


@dataclass(frozen=True, slots=True)
class Added:
    """A note, and whether this call made it."""

    note: RaterNote
    new: bool


@transaction.atomic
def note_add(
    *,
    rater: Rater,
    assignment: Assignment,
    kind: str,
    client_id: uuid.UUID,
    criterion: Criterion | None = None,
    text: str = "",
    version: int | None = None,
) -> Added:
    """Keep a rater's note on a chat; the same client_id again changes nothing and returns the same note.

    "Criterion unclear" names a criterion and keeps its text as it stood: version number `version`, by default
    the newest. A comment needs words; the other kinds may speak for themselves.

    Raises FieldProblem for what is missing, unknown or too much, Conflict where the client_id belongs to
    another note.
    """
    text = text.strip()
    if kind == RaterNote.Kind.UNCLEAR and criterion is None:
        raise FieldProblem("criterion", "Say which criterion is unclear.")
    if kind == RaterNote.Kind.COMMENT and not text:
        raise FieldProblem("text", "A comment needs words.")
    asked = version_read(criterion=criterion, number=version) if criterion else None
    others = RaterNote.objects.filter(rater=rater, chat=assignment.chat_id).exclude(client_id=client_id)
    if others.count() >= MOST:
        raise FieldProblem("text", f"There are {MOST} notes on this chat already.")
    note, created = RaterNote.objects.get_or_create(
        rater=rater,
        client_id=client_id,
        defaults={
            "chat_id": assignment.chat_id,
            "criterion": criterion,
            "version": asked,
            "kind": kind,
            "text": text,
        },
    )
    same = (note.chat_id, note.criterion, note.kind, note.text) == (assignment.chat_id, criterion, kind, text)
    if not created and not same:
        raise Conflict("client_id_used")
    return Added(note, created)


@transaction.atomic
def note_settle(*, note: RaterNote, by: User) -> RaterNote:
    """Mark a note as dealt with; a second time changes nothing."""
    row = RaterNote.objects.select_for_update(of=("self",)).get(pk=note.pk)
    if row.settled_at is None:
        row.settled_by, row.settled_at = by, timezone.now()
        row.save(update_fields=["settled_by", "settled_at"])
        audit(actor=by, verb="note settled", obj=row, kind=row.kind)
    return row
