"""Page of the rules for chats that come in, with a trial on a pasted chat."""

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from common.access import permission_or_404
from common.problems import FieldProblem
from labeling.ingest.forms import KIND_LABELS, IncomingForm
from labeling.ingest.names import NamesUnavailable
from labeling.ingest.queries import source_rows, trial_of
from labeling.ingest.services.incoming import incoming_change, preview_settings
from labeling.models.ingest import IngestSettings
from labeling.models.people import User
from labeling.sets.services import UnconfirmedError

RIGHT = "labeling.manage_labeling"


@permission_or_404(RIGHT)
@require_http_methods(["GET", "POST"])
def incoming(request: HttpRequest) -> HttpResponse:
    """The rules for chats that come in, and the systems that send them."""
    row = IngestSettings.current()
    form = IncomingForm(request.POST) if request.method == "POST" else IncomingForm.of(row)
    unconfirmed = ""
    if request.method == "POST" and form.is_valid():
        try:
            incoming_change(
                values=form.cleaned_data,
                by=cast(User, request.user),
                confirmed="confirmed" in request.POST,
            )
            messages.success(request, "Rules saved. They apply to chats that come in from now on.")
            return redirect("labeling:workspace_chats")
        except FieldProblem as problem:
            form.add_problem(problem)
        except UnconfirmedError as refused:
            unconfirmed = str(refused)
    return _page(request, form, unconfirmed=unconfirmed)


@permission_or_404(RIGHT)
@require_POST
def incoming_try(request: HttpRequest) -> HttpResponse:
    """What the rules in the form make of a pasted chat; nothing is stored."""
    form, context = IncomingForm(request.POST), dict[str, Any]()
    try:
        # NB: a browser without scripts sends the chat alone: the rules in force are tried.
        given = "topic_rules" in request.POST
        if given and not form.is_valid():
            raise FieldProblem("", "Correct the rules above first")
        row = preview_settings(form.cleaned_data) if given else IngestSettings.current()
        trial = trial_of(request.POST.get("chat", ""), row)
        counts = [(KIND_LABELS[kind], count) for kind, count in trial.counts.items()]
        context = {"trial": trial, "counts": counts}
    except (FieldProblem, NamesUnavailable) as problem:
        context = {"problem": f"{str(problem)[:1].upper()}{str(problem)[1:]}."}
    if request.headers.get("HX-Request"):
        return render(request, "labeling/ingest/_trial.html", context)
    return _page(request, IncomingForm.of(IngestSettings.current()), **context)


def _page(request: HttpRequest, form: IncomingForm, **context: Any) -> HttpResponse:
    sources = [
        (row, [(KIND_LABELS.get(kind, kind), count) for kind, count in row.redactions.items()])
        for row in source_rows()
    ]
    context |= {
        "form": form,
        "sources": sources,
        "settings": IngestSettings.current(),
        "pasted": request.POST.get("chat", ""),
    }
    return render(request, "labeling/ingest/incoming.html", context)
