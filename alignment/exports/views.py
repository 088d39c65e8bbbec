"""The page from which everything leaves the product, and its downloads."""

import tempfile
from typing import Any, cast
from urllib.parse import urlencode

from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from alignment.archive.queries import newest_archive, obstacle, own_chats_to_label
from alignment.exports.core import CONTENT_TYPES, EXPORTS, KINDS, Export
from alignment.exports.queries.lines import ExportRun, export_runs, runs_to_export
from alignment.exports.services import ExportChoice, export_log, export_texts, export_write, file_name
from common.access import found_or_404, permission_or_404
from evaluation.models.runs import ANCHORS, FINISHED, Run
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.people.queries.visibility import labels_too, reads_holdout

LEADS = "labeling.manage_labeling"
TEXTS = ("jsonl", "csv", "json")


@permission_or_404("labeling.see_judge")
@require_safe
def export_page(request: HttpRequest) -> HttpResponse:
    """Choose a set and a run, and download them in any format; leads also the whole workspace."""
    sets = list(ChatSet.objects.listed(also=request.GET.get("set")).order_by("name"))
    chosen = _chosen_set(request, sets)
    run = _run(request, chosen) if chosen else None
    user = cast(User, request.user)
    context: dict[str, Any] = {
        "sets": sets,
        "chat_set": chosen,
        "runs": list(_runs_of(request, chosen).order_by("-pk")) if chosen else [],
        "run": run,
        "rows": _rows(request, chosen, run) if chosen else [],
        "hides_holdout": not reads_holdout(user=user),
        "hides_own": labels_too(user=user),
    }
    if request.user.has_perm(LEADS):
        context |= {
            "archive": newest_archive(),
            "obstacle": obstacle(),
            "own_chats": own_chats_to_label(user),
        }
    return render(request, "alignment/exports/page.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def export_file(request: HttpRequest, set_id: int, what: str, kind: str) -> HttpResponseBase:
    """One export as a download: text is streamed, workbooks and ZIP files go through a file on the disk."""
    export = EXPORTS.get(what)
    if export is None or kind not in export.kinds or not _may(request, export):
        raise Http404
    chat_set = get_object_or_404(ChatSet.objects.select_related("rubric"), pk=set_id)
    runs: list[ExportRun] = []
    if export.runs:
        run = _run(request, chat_set)
        runs = export_runs([run]) if run else runs_to_export(chat_set)[0]
    choice = ExportChoice(chat_set, runs, cast(User, request.user))
    export_log(choice, what, kind)
    name, content_type = file_name(choice, what, kind), CONTENT_TYPES[kind]
    if kind in TEXTS:
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingHttpResponse(
            export_texts(choice, what, kind), content_type=content_type, headers=headers
        )
    file = tempfile.TemporaryFile()  # noqa: SIM115  the response closes it
    export_write(choice, what, kind, file)
    file.seek(0)
    return FileResponse(file, as_attachment=True, filename=name, content_type=content_type)


def _chosen_set(request: HttpRequest, sets: list[ChatSet]) -> ChatSet | None:
    """Return the set of the query, else the first one. Raises Http404 for one that does not exist."""
    if given := request.GET.get("set", ""):
        return found_or_404(next((row for row in sets if str(row.pk) == given), None))
    return sets[0] if sets else None


def _runs_of(request: HttpRequest, chat_set: ChatSet) -> Any:
    runs = runs_open_to(cast(User, request.user)).filter(chat_set=chat_set, state__in=FINISHED)
    return runs.exclude(purpose__in=(Run.Purpose.TRY, ANCHORS))


def _run(request: HttpRequest, chat_set: ChatSet) -> Run | None:
    """Return the run of the query; None for the newest run of each judge, and for a run of another set."""
    given = request.GET.get("run", "")
    return (
        _runs_of(request, chat_set).filter(pk=given).first()
        if given.isdecimal() and len(given) < 19
        else None
    )


def _may(request: HttpRequest, export: Export) -> bool:
    return not export.leads or request.user.has_perm(LEADS)


def _rows(request: HttpRequest, chat_set: ChatSet, run: Run | None) -> list[dict[str, Any]]:
    """Return what the user may export, with a link for each format."""
    query = f"?{urlencode({'run': run.pk})}" if run else ""
    return [
        {
            "export": export,
            "links": [
                (
                    KINDS[kind],
                    reverse("alignment:export_file", args=[chat_set.pk, what, kind])
                    + (query if export.runs else ""),
                )
                for kind in export.kinds
            ],
        }
        for what, export in EXPORTS.items()
        if _may(request, export)
    ]
