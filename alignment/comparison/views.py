"""What every page about a scope needs of a request: the run, the scope, and 404 where either is missing."""

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
    """Guard a view: a page against a rater who gave no label there does not exist."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except UnknownRater as error:
            raise Http404 from error

    return guarded


def run_and_scope(request: HttpRequest, run_id: int) -> tuple[Run, Scope]:
    """The run and what the query string asks of it; 404 where either is not there."""
    run = get_object_or_404(runs_open_to(request.user), pk=run_id)
    return run, scope_or_404(request, run.chat_set, run)


def scope_or_404(request: HttpRequest, chat_set: ChatSet | None, run: Run | None) -> Scope:
    """The scope that the query string asks for; nonsense there is not found."""
    scope = requested_scope(chat_set, run, request.GET, request.user)
    if scope is None:
        raise Http404
    return scope
