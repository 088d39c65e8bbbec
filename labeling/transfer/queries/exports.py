"""Labels, adjudications, notes and assignments of a chat set as export lines with readable ids."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.db.models import Q, QuerySet

from common.jsonl import in_batches, iso
from labeling.chats.queries import criteria_of_set
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Adjudication, Assignment, Label, LabelRevision, RaterNote
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown

CHATS_AT_ONCE = 200
ROWS_AT_ONCE = 1000

Line = dict[str, Any]
Order = dict[int, int]
Lines = Callable[[ChatSet, User | None], Iterator[Line]]


def label_lines(chat_set: ChatSet, user: User | None = None) -> Iterator[Line]:
    """Yield the submitted labels on the set's chats and its rubric's criteria, without drafts."""
    criteria, order = criteria_in_order(chat_set)
    for chats in chats_in_order(chat_set, user):
        labels = Label.objects.filter(
            chat_id__in=chats, criterion_id__in=criteria, state=Label.State.SUBMITTED
        ).select_related("rater", "version", "carried_from")
        places = places_of(chats)
        for label in sorted(
            labels, key=lambda row: (places[row.chat_id], order[row.criterion_id], row.rater.name)
        ):
            yield label_line(label, chats[label.chat_id], criteria[label.criterion_id])


def label_line(label: Label, chat_id: str, criterion: str) -> Line:
    """Return the line of one label; its rater, version and origin must be loaded."""
    return {
        "chat_id": chat_id,
        "criterion": criterion,
        "rater": label.rater.name,
        **_answer(label),
        "kind": label.rater.kind,
        **filled(post_reveal=label.post_reveal),
        "version": label.version.number,
        "created_at": iso(label.given_at),
        **filled(active_ms=label.active_ms, carried_from=label.carried_from and label.carried_from.key),
    }


def revision_lines(chat_set: ChatSet, user: User | None = None) -> Iterator[Line]:
    """Yield the history of the set's labels, with drafts and withdrawn answers, oldest first."""
    criteria, order = criteria_in_order(chat_set)
    for chats in chats_in_order(chat_set, user):
        rows = LabelRevision.objects.filter(
            label__chat_id__in=chats, label__criterion_id__in=criteria
        ).select_related("label__rater", "version")
        places = places_of(chats)
        for row in sorted(
            rows,
            key=lambda row: (
                places[row.label.chat_id],
                order[row.label.criterion_id],
                row.label.rater.name,
                row.number,
            ),
        ):
            yield _revision_line(row, chats[row.label.chat_id], criteria[row.label.criterion_id])


def _revision_line(row: LabelRevision, chat_id: str, criterion: str) -> Line:
    return {
        "id": row.pk,
        "chat_id": chat_id,
        "criterion": criterion,
        "rater": row.label.rater.name,
        "number": row.number,
        "client_id": str(row.client_id),
        "state": row.state,
        **_answer(row),
        **filled(post_reveal=row.post_reveal),
        "version": row.version.number,
        "created_at": iso(row.created_at),
    }


def _answer(row: Label | LabelRevision) -> Line:
    parts = [
        {"message": part["n"], "start": part["start"], "end": part["end"], "quote": part.get("quote", "")}
        for part in row.evidence
        if "start" in part
    ]
    return {
        "value": row.value,
        **filled(
            rationale=row.rationale,
            turns=[part["n"] for part in row.evidence if "start" not in part],
            evidence=parts,
        ),
    }


def adjudication_lines(chat_set: ChatSet, user: User | None = None) -> Iterator[Line]:
    """Yield the current decisions on the set's chats and its rubric's criteria."""
    criteria, order = criteria_in_order(chat_set)
    for chats in chats_in_order(chat_set, user):
        rows = Adjudication.objects.filter(
            chat_id__in=chats, criterion_id__in=criteria, replaced_at=None
        ).select_related("carried_from")
        places = places_of(chats)
        for row in sorted(rows, key=lambda row: (places[row.chat_id], order[row.criterion_id])):
            yield {
                "chat_id": chats[row.chat_id],
                "criterion": criteria[row.criterion_id],
                "adjudicated_by": row.by_name,
                "value": row.value,
                "reason": row.reason,
                "created_at": iso(row.created_at),
                **filled(carried_from=row.carried_from and row.carried_from.key),
            }


def note_lines(chat_set: ChatSet, user: User | None = None) -> Iterator[Line]:
    """Yield the rater notes on the set's chats, oldest first."""
    criteria, _ = criteria_in_order(chat_set)
    for chats in chats_in_order(chat_set, user):
        rows = RaterNote.objects.filter(
            Q(criterion=None) | Q(criterion_id__in=criteria), chat_id__in=chats
        ).select_related("rater", "version", "settled_by")
        places = places_of(chats)
        for row in sorted(rows, key=lambda row: (places[row.chat_id], row.created_at, row.pk)):
            yield {
                "chat_id": chats[row.chat_id],
                "rater": row.rater.name,
                "kind": row.kind,
                **filled(
                    criterion=row.criterion_id and criteria[row.criterion_id],
                    version=row.version and row.version.number,
                ),
                "text": row.text,
                "client_id": str(row.client_id),
                "created_at": iso(row.created_at),
                **filled(
                    settled_by=row.settled_by and row.settled_by.get_username(),
                    settled_at=row.settled_at and iso(row.settled_at),
                ),
            }


_ASSIGNMENT = {
    "id": "pk",
    "job": "job__name",
    "job_id": "job_id",
    "chat_id": "chat__external_id",
    "slot": "slot",
    "kind": "kind",
    "state": "state",
    "rater": "rater__name",
    "guideline": "guideline__number",
    "submitted_at": "submitted_at",
    "revealed_at": "revealed_at",
    "skip_reason": "skip_reason",
    "active_ms": "active_ms",
}


def assignment_lines(chat_set: ChatSet, user: User | None = None) -> Iterator[Line]:
    """Yield the assignments of the set's jobs, gold chats included, job by job in order."""
    rows = Assignment.objects.filter(job__chat_set=chat_set)
    if user is not None:
        rows = rows.filter(chat__in=chats_shown(user=user).values("pk"))
    columns = rows.order_by("job_id", "position", "slot", "pk").values_list(*_ASSIGNMENT.values())
    for values in columns.iterator(ROWS_AT_ONCE):
        line = dict(zip(_ASSIGNMENT, values, strict=True))
        for name in ("submitted_at", "revealed_at"):
            line[name] = line[name] and iso(line[name])
        yield {name: line[name] for name in ("id", "job", "job_id", "chat_id", "slot")} | filled(**line)


_CELL = ("chat_id", "criterion", "rater")
_GIVEN = ("value", "rationale", "turns", "evidence")
# Kind of export → its lines and its table columns.
LABELLING: Mapping[str, tuple[Lines, tuple[str, ...]]] = {
    "labels": (
        label_lines,
        (*_CELL, *_GIVEN, "kind", "post_reveal", "version", "created_at", "active_ms", "carried_from"),
    ),
    "adjudications": (
        adjudication_lines,
        ("chat_id", "criterion", "adjudicated_by", "value", "reason", "created_at", "carried_from"),
    ),
    "revisions": (
        revision_lines,
        ("id", *_CELL, "number", "client_id", "state", *_GIVEN, "post_reveal", "version", "created_at"),
    ),
    "notes": (
        note_lines,
        (
            *("chat_id", "rater", "kind", "criterion", "version", "text"),
            *("client_id", "created_at", "settled_by", "settled_at"),
        ),
    ),
    "assignments": (assignment_lines, tuple(_ASSIGNMENT)),
}


def criteria_in_order(chat_set: ChatSet) -> tuple[dict[int, str], Order]:
    """Return keys and positions of the criteria of the set's rubric, by id."""
    keys = {row.pk: row.key for row in criteria_of_set(chat_set)}
    return keys, places_of(keys)


def chats_in_order(chat_set: ChatSet, user: User | None = None) -> Iterator[dict[int, str]]:
    """Yield external ids by id in batches, in the set's order; with a user, only chats they may see."""
    rows: QuerySet[ChatSetMember] = ChatSetMember.objects.filter(chat_set=chat_set).order_by("position")
    if user is not None:
        rows = rows.filter(chat__in=chats_shown(user=user).values("pk"))
    columns = rows.values_list("chat_id", "chat__external_id")
    for batch in in_batches(columns.iterator(CHATS_AT_ONCE), CHATS_AT_ONCE):
        yield dict(batch)


def places_of(keys: dict[int, str]) -> Order:
    """Return the index of each."""
    return {pk: place for place, pk in enumerate(keys)}


def filled(**fields: Any) -> Line:
    """Return only non-empty fields: in a file an absent field means the same."""
    return {name: value for name, value in fields.items() if value}
