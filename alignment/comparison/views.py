"""Run and scope of a request; 404 if either is missing."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from alignment.comparison.queries.answers import UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import Scope
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import ChatSet


def unknown_rater_404(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view to answer 404 if the rater of the query string gave no label."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except UnknownRater as error:
            raise Http404 from error

    return guarded


def run_and_scope(request: HttpRequest, run_id: int) -> tuple[Run, Scope]:
    """The run, and the scope of the query string; 404 if either is missing."""
    run = get_object_or_404(runs_open_to(request.user), pk=run_id)
    return run, scope_or_404(request, run.chat_set, run)


def scope_or_404(request: HttpRequest, chat_set: ChatSet | None, run: Run | None) -> Scope:
    """The scope of the query string; 404 if it is invalid."""
    scope = requested_scope(chat_set, run, request.GET, request.user)
    if scope is None:
        raise Http404
    return scope
