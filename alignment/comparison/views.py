"""What pages of runs share: run and scope of a request (404 if either is missing), and the link *Back*."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from alignment.comparison.queries.answers import ReportNotComputed, UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import Scope
from common.back import origin_of
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import ChatSet

# Where *Back* leads, in words; other pages are "the page before". Outer pages first: none leads back to a
# page further in, which the reader has just left.
PAGES: Mapping[str, str] = {
    "home": "Home",
    "inbox": "the inbox",
    "labeling:set_chat": "the chat in its set",
    "alignment:report_list": "reports",
    "evaluation:run_list": "runs",
    "evaluation:run_detail": "the run",
    "alignment:regression_detail": "the regression test",
    "alignment:report_run": "the report",
    "alignment:criterion_list": "criteria",
    "alignment:criterion_detail": "the criterion",
    "alignment:criterion_report": "the criterion’s report",
    "alignment:run_flips": "flipped chats",
    "alignment:misalignment_list": "disagreements",
    "alignment:disagreements": "disagreements",
    "alignment:cell": "the list of chats",
    "alignment:no_verdict": "chats without a verdict",
    "alignment:knowledge_gaps": "knowledge gaps",
    "alignment:chat": "the chat",
    "alignment:prompt_edit": "the prompt",
}
_OUTER = [*PAGES][:-2]  # chat and prompt lead to each other


@dataclass(frozen=True, slots=True)
class Back:
    """The link *Back* of a page."""

    url: str
    words: str


def back_of(request: HttpRequest) -> Back | None:
    """Return the link to the page that the reader came from; None if it is unknown or further in."""
    origin, own = origin_of(request), request.resolver_match
    if origin is None or own is None or own.view_name == origin.route:
        return None
    outer = _OUTER[: _OUTER.index(own.view_name)] if own.view_name in _OUTER else PAGES
    if origin.route in PAGES and origin.route not in outer:
        return None
    return Back(origin.url, PAGES.get(origin.route, "the page before"))


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
