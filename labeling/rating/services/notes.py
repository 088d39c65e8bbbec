"""Rater notes: raters add them, leads and authors settle them."""

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
class NoteResult:
    """A note, and whether this call created it."""

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
) -> NoteResult:
    """Save a rater's note on a chat; repeating a client_id returns the same note.

    "Criterion unclear" needs a criterion and stores the version that the rater read: number `version`, by
    default the newest. A comment needs text; for other kinds it is optional.

    Raises FieldProblem for missing or unknown fields and for too many notes, Conflict where the client_id
    belongs to another note.
    """
    text = text.strip()
    if kind == RaterNote.Kind.UNCLEAR and criterion is None:
        raise FieldProblem("criterion", "Choose the unclear criterion.")
    if kind == RaterNote.Kind.COMMENT and not text:
        raise FieldProblem("text", "A comment needs text.")
    read = version_read(criterion=criterion, number=version) if criterion else None
    others = RaterNote.objects.filter(rater=rater, chat=assignment.chat_id).exclude(client_id=client_id)
    if others.count() >= MOST:
        raise FieldProblem("text", f"This chat already has {MOST} notes.")
    note, created = RaterNote.objects.get_or_create(
        rater=rater,
        client_id=client_id,
        defaults={
            "chat_id": assignment.chat_id,
            "criterion": criterion,
            "version": read,
            "kind": kind,
            "text": text,
        },
    )
    same = (note.chat_id, note.criterion, note.kind, note.text) == (assignment.chat_id, criterion, kind, text)
    if not created and not same:
        raise Conflict("client_id_used")
    return NoteResult(note, created)


@transaction.atomic
def note_settle(*, note: RaterNote, by: User) -> RaterNote:
    """Mark a note as settled; repeating it changes nothing."""
    row = RaterNote.objects.select_for_update(of=("self",)).get(pk=note.pk)
    if row.settled_at is None:
        row.settled_by, row.settled_at = by, timezone.now()
        row.save(update_fields=["settled_by", "settled_at"])
        audit(actor=by, verb="note settled", obj=row, kind=row.kind)
    return row
