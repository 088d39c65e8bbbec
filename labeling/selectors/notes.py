"""Notes of raters: a rater's own on a chat, and those that an author or a lead has to look at."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, QuerySet

from labeling.models.chats import Chat
from labeling.models.labels import Assignment, RaterNote
from labeling.models.people import User
from labeling.models.rubric import CriterionVersion


def own_notes(*, assignment: Assignment) -> list[RaterNote]:
    """What the assignment's rater noted on its chat, oldest first; nobody else's."""
    rows = RaterNote.objects.filter(rater=assignment.rater_id, chat=assignment.chat_id)
    return list(rows.select_related("criterion", "version").order_by("pk"))


def notes_for(*, user: User | AnonymousUser) -> QuerySet[RaterNote]:
    """The notes this user may read, newest first: all for a lead; for an author the unclear criteria.

    A chat that is holdout in any set is holdout for authors, and so is what raters write about it.
    """
    rows = RaterNote.objects.order_by("-pk")
    if not user.has_perm("labeling.manage_labeling"):
        rows = rows.filter(kind=RaterNote.Kind.UNCLEAR)
    return rows.filter(chat__in=Chat.objects.visible_to(user).values("pk"))


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """What of the notes to show; '' = any. `state` is open or settled."""

    kind: str = ""
    criterion: str = ""
    state: str = "open"

    def of(self, notes: QuerySet[RaterNote]) -> QuerySet[RaterNote]:
        """Those of the notes that fit."""
        given = {"kind": self.kind, "criterion__key": self.criterion}
        rows = notes.filter(**{name: value for name, value in given.items() if value})
        return rows.filter(settled_at__isnull=self.state == "open") if self.state else rows


def note_counts(notes: QuerySet[RaterNote]) -> Mapping[str, int]:
    """How many of the notes are open, by kind."""
    rows = notes.filter(settled_at=None).order_by().values("kind").annotate(n=Count("pk"))
    return {row["kind"]: row["n"] for row in rows}


def unclear_counts(notes: QuerySet[RaterNote]) -> Mapping[int, int]:
    """How many of the notes are open and call a criterion unclear, by criterion id."""
    rows = notes.filter(settled_at=None, kind=RaterNote.Kind.UNCLEAR).order_by()
    return {row["criterion"]: row["n"] for row in rows.values("criterion").annotate(n=Count("pk"))}


def newest_texts(notes: Collection[RaterNote]) -> Mapping[int, CriterionVersion]:
    """The version in force of every criterion that the notes name, by criterion id; one query."""
    named = {note.criterion_id for note in notes if note.criterion_id}
    rows = CriterionVersion.objects.filter(criterion__in=named).order_by("number")
    return {row.criterion_id: row for row in rows}
