"""Run and scope of a request; 404 if either is missing."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from alignment.comparison.queries.answers import ReportNotComputed, UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import Scope
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import ChatSet


def comparison_view(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view to answer 404 if the rater of the query string gave no label.

    While the report that the page is about is not computed, redirect to the report of the run: it says so.
    """

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except UnknownRater as error:
            raise Http404 from error
        except ReportNotComputed:
            messages.info(request, "This page needs the report of the run, which a worker computes first.")
            report = reverse("alignment:report_run", args=[kwargs["run_id"]])
            return redirect(f"{report}?{request.GET.urlencode()}" if request.GET else report)

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
