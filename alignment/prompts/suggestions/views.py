"""Suggested revisions in the editor's panel: start, show, use."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.forms import SuggestForm
from alignment.prompts.suggestions.queries.suggestions import (
    suggestion_in_full,
    suggestion_shown,
    suggestions_shown,
)
from alignment.prompts.suggestions.services import (
    suggestion_cancel,
    suggestion_dismiss,
    suggestion_estimate,
    suggestion_prepare,
    suggestion_start,
    suggestion_take_back,
    suggestion_use,
)
from common.access import permission_or_404
from common.problems import InputProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion

USED = "The suggestion is your draft now. Read it before you save it."
RESTORED = "Your earlier draft is restored."


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "POST"])
def prompt_suggest(request: HttpRequest, key: str) -> HttpResponse:
    """
    The panel's contents; a post starts a suggestion.

    The panel polls with the state it has `seen`; the response is empty while that state lasts.
    """
    criterion = get_object_or_404(Criterion, key=key)
    if request.method != "POST":
        return _panel(request, criterion)
    form = SuggestForm(request.POST)
    problem = "" if form.is_valid() else form.first_error
    if not problem:
        try:
            suggestion_start(criterion=criterion, choice=form.choice, by=cast(User, request.user))
        except InputProblem as refused:
            problem = str(refused)
    return _panel(request, criterion, problem=problem)


@permission_or_404("labeling.edit_prompts")
@require_safe
def suggestion_detail(request: HttpRequest, key: str, suggestion_id: int) -> HttpResponse:
    """The panel with one suggestion opened."""
    row = _suggestion(request, key, suggestion_id)
    return _panel(request, row.criterion, opened=row)


@permission_or_404("labeling.edit_prompts")
@require_POST
def suggestion_act(request: HttpRequest, key: str, suggestion_id: int, act: str) -> HttpResponse:
    """Use a suggestion, restore the earlier draft, dismiss or cancel."""
    row = _suggestion(request, key, suggestion_id)
    if act not in ACTS:
        raise Http404
    try:
        message = ACTS[act](row, cast(User, request.user))
    except InputProblem as refused:
        return _panel(request, row.criterion, opened=row, problem=str(refused))
    if not message:
        return _panel(request, row.criterion)
    messages.success(request, message)
    editor = reverse("alignment:prompt_edit", args=[key])
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=204, headers={"HX-Redirect": editor})
    return redirect(editor)


def _use(row: Suggestion, by: User) -> str:
    suggestion_use(suggestion=row, by=by)
    return USED


def _take_back(row: Suggestion, by: User) -> str:
    suggestion_take_back(suggestion=row, by=by)
    return RESTORED


def _dismiss(row: Suggestion, by: User) -> str:
    suggestion_dismiss(suggestion=row, by=by)
    return ""


def _cancel(row: Suggestion, by: User) -> str:
    suggestion_cancel(suggestion=row)
    return ""


# Each returns a message for the editor's page, '' if the panel shows the result.
ACTS: Mapping[str, Callable[[Suggestion, User], str]] = {
    "use": _use,
    "take-back": _take_back,
    "dismiss": _dismiss,
    "cancel": _cancel,
}


def _suggestion(request: HttpRequest, key: str, suggestion_id: int) -> Suggestion:
    row = suggestion_shown(suggestion_id=suggestion_id, user=cast(User, request.user))
    if row is None or row.criterion.key != key:
        raise Http404
    return row


def _panel(
    request: HttpRequest, criterion: Criterion, *, opened: Suggestion | None = None, problem: str = ""
) -> HttpResponse:
    """Render all suggestions on the criterion, with the opened or the newest one in full."""
    user = cast(User, request.user)
    rows = suggestions_shown(user=user, criterion=criterion)
    waiting = next((row for row in rows if row.is_open), None)
    seen = f"{waiting.pk} {waiting.state} {waiting.error}" if waiting else ""
    if seen and request.GET.get("seen") == seen:
        return HttpResponse(status=204)
    first = opened or next((row for row in rows if row.dismissed_at is None), None)
    form = SuggestForm(request.GET if "chats" in request.GET else None)
    context: dict[str, Any] = {
        "criterion": criterion,
        "form": form,
        "problem": problem,
        "waiting": waiting,
        "seen": seen,
        "shown": suggestion_in_full(first, user=user) if first and not first.is_open else None,
        "rows": rows,
    }
    if waiting is None:
        context |= _offer(criterion, form, user)
    return render(request, "alignment/prompts/suggestions/_suggestions.html", context)


def _offer(criterion: Criterion, form: SuggestForm, user: User) -> dict[str, Any]:
    """Return both requests that could be sent now with their estimates, or why there is none.

    `offer` revises by disagreements, `texts` writes the prompt from the raters' texts.
    """
    offers: dict[str, Any] = {}
    for name, refused in {"texts": "no_texts", "offer": "refused"}.items():
        choice = replace(form.offered, from_texts=name == "texts")
        try:
            prepared = suggestion_prepare(criterion=criterion, choice=choice, by=user)
            offers[name] = {"prepared": prepared, "estimate": suggestion_estimate(prepared)}
        except InputProblem as problem:
            offers[refused] = str(problem)
    return offers
