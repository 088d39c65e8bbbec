"""Rater notes: a rater's own notes on a chat, and the notes for authors and leads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, QuerySet
from django.urls import reverse

from common.inbox.subjects import Subject
from labeling.models.labels import Assignment, RaterNote
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.people.queries.visibility import chats_shown, to_label
from labeling.rubric.queries.versions import TextChange, criterion_diff


def own_notes(*, assignment: Assignment) -> list[RaterNote]:
    """Return the notes of the assignment's rater on its chat, oldest first."""
    rows = RaterNote.objects.filter(rater=assignment.rater_id, chat=assignment.chat_id)
    return list(rows.select_related("criterion", "version").order_by("pk"))


def notes_for(*, user: User | AnonymousUser) -> QuerySet[RaterNote]:
    """Return the notes that the user may read, newest first: all for leads, unclear criteria for authors.

    Authors do not see notes on chats that are holdout in any set.
    """
    rows = RaterNote.objects.order_by("-pk")
    if not user.has_perm("labeling.manage_labeling"):
        rows = rows.filter(kind=RaterNote.Kind.UNCLEAR)
    return rows.filter(chat__in=chats_shown(user=user).values("pk"))


def note_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these notes that the user may open: those for the role, and a rater's own ones.

    A rater's own ones open once the chat is labelled: until then the answers may tell how others label it.
    """
    rows = RaterNote.objects.filter(pk__in=ids).select_related("chat", "rater").defer("chat__messages")
    told = set(notes_for(user=user).filter(pk__in=ids).values_list("pk", flat=True))
    if not user.has_perm("labeling.edit_prompts"):
        told = set()
    own = set(
        rows.filter(rater__user=user.pk).exclude(chat__in=to_label(user=user)).values_list("pk", flat=True)
    )
    if not user.has_perm("labeling.label_chats"):
        own = set()
    return {
        row.pk: Subject(
            title=f"the note on chat {row.chat.external_id}",
            url=reverse("labeling:note_detail", args=[row.pk])
            if row.pk in told
            else reverse("comments", args=[f"note:{row.pk}"]),
            people=(row.rater.user_id,) if row.rater.user_id else (),
            text=row.text,
        )
        for row in rows
        if row.pk in told | own
    }


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """Filter of notes; '' = any. `state` is open or settled."""

    kind: str = ""
    criterion: str = ""
    state: str = "open"

    def of(self, notes: QuerySet[RaterNote]) -> QuerySet[RaterNote]:
        """Return the matching notes, newest first; notes on unclear criteria grouped by criterion."""
        matching = {"kind": self.kind, "criterion__key": self.criterion}
        rows = notes.filter(**{name: value for name, value in matching.items() if value})
        if self.kind == RaterNote.Kind.UNCLEAR:
            rows = rows.order_by("criterion__position", "criterion", "-pk")
        return rows.filter(settled_at__isnull=self.state == "open") if self.state else rows


def note_counts(notes: QuerySet[RaterNote]) -> Mapping[str, int]:
    """Count open notes by kind."""
    rows = notes.filter(settled_at=None).order_by().values("kind").annotate(n=Count("pk"))
    return {row["kind"]: row["n"] for row in rows}


def unclear_counts(notes: QuerySet[RaterNote]) -> Mapping[int, int]:
    """Count open notes on unclear criteria, by criterion id."""
    rows = notes.filter(settled_at=None, kind=RaterNote.Kind.UNCLEAR).order_by()
    return {row["criterion"]: row["n"] for row in rows.values("criterion").annotate(n=Count("pk"))}


def newest_texts(notes: Collection[RaterNote]) -> Mapping[int, CriterionVersion]:
    """Return the current version of each criterion of the notes, by criterion id; one query."""
    named = {note.criterion_id for note in notes if note.criterion_id}
    rows = CriterionVersion.objects.filter(criterion__in=named).order_by("number")
    return {row.criterion_id: row for row in rows}


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note for a page; `changes` of its criterion's text since then, empty where it is current."""

    note: RaterNote
    current: CriterionVersion | None
    changes: tuple[TextChange, ...]


def note_rows(notes: Sequence[RaterNote]) -> list[NoteRow]:
    """Return the notes with the criterion's text then and now; one query."""
    newest = newest_texts(notes)
    return [_note_row(note, newest.get(note.criterion_id or 0)) for note in notes]


def _note_row(note: RaterNote, current: CriterionVersion | None) -> NoteRow:
    then = note.version
    return NoteRow(note, current, tuple(criterion_diff(then, current)) if then and current else ())


def criteria_with_notes(notes: QuerySet[RaterNote]) -> list[Criterion]:
    """Return the criteria of the notes, in the rubric's order."""
    named = notes.order_by().filter(criterion__isnull=False).values("criterion")
    return list(Criterion.objects.filter(pk__in=named).order_by("rubric", "dimension__position", "position"))
