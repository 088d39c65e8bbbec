"""Pages of rater notes for authors and leads: list, one note beside its chat, settle."""

from typing import cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from common.access import permission_or_404
from labeling.models.labels import RaterNote
from labeling.models.people import User
from labeling.rating.queries.notes import NoteFilter, criteria_with_notes, note_counts, note_rows, notes_for
from labeling.rating.services.notes import note_settle

NOTES_A_PAGE = 30
SHOWN_WITH = ("chat__topic", "rater", "criterion", "version", "settled_by")
STATES = {"open": "Open", "settled": "Settled", "": "All"}


@permission_or_404("labeling.edit_prompts")
@require_safe
def note_list(request: HttpRequest) -> HttpResponse:
    """Rater notes, filtered by kind, criterion and state."""
    notes = notes_for(user=request.user)
    note_filter = _note_filter(request)
    matching = note_filter.of(notes).select_related(*SHOWN_WITH).defer("chat__messages", "chat__metadata")
    page = Paginator(matching, NOTES_A_PAGE).get_page(request.GET.get("page"))
    counts = note_counts(notes)
    context = {
        "page_obj": page,
        "rows": note_rows(list(page)),
        "note_filter": note_filter,
        "kinds": [(kind, label, counts.get(kind, 0)) for kind, label in _kinds(request)],
        "criteria": criteria_with_notes(notes),
        "states": STATES.items(),
        "open": sum(counts.values()),
    }
    return render(request, "labeling/rating/note_list.html", context)


def _note_filter(request: HttpRequest) -> NoteFilter:
    """Return the filter of the address; ignore unknown words."""
    kind, state = request.GET.get("kind", ""), request.GET.get("state", "open")
    if not _kinds(request):
        kind = RaterNote.Kind.UNCLEAR
    return NoteFilter(
        kind=kind if kind in RaterNote.Kind.values else "",
        criterion=request.GET.get("criterion", ""),
        state=state if state in STATES else "open",
    )


def _kinds(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the kinds to choose from; authors see one kind only, so none."""
    return list(RaterNote.Kind.choices) if request.user.has_perm("labeling.manage_labeling") else []


def _note(request: HttpRequest, note_id: int) -> RaterNote:
    return get_object_or_404(notes_for(user=request.user).select_related(*SHOWN_WITH), pk=note_id)


@permission_or_404("labeling.edit_prompts")
@require_safe
def note_detail(request: HttpRequest, note_id: int) -> HttpResponse:
    """One note beside its chat."""
    note = _note(request, note_id)
    (row,) = note_rows([note])
    context = {"row": row, "note": note, "chat": note.chat, "thread": f"note:{note.pk}"}
    return render(request, "labeling/rating/note_detail.html", context)


@permission_or_404("labeling.edit_prompts")
@require_POST
def note_settled(request: HttpRequest, note_id: int) -> HttpResponse:
    """Mark a note as settled and return to the filtered list."""
    note_settle(note=_note(request, note_id), by=cast(User, request.user))
    messages.success(request, "Note settled. Find it under “Settled”.")
    query = request.GET.urlencode()
    return redirect(reverse("labeling:note_list") + (f"?{query}" if query else ""))
