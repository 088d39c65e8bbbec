"""Archives of the whole workspace, for leads: make, download, delete, take in."""

from typing import cast

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from alignment.archive.queries import newest_archive, own_chats_to_label
from alignment.archive.services import (
    archive_ask,
    archive_delete,
    archive_downloaded,
    archive_open_to,
    archive_take,
)
from alignment.archive.worker import archive_path
from alignment.models.archives import WorkspaceArchive
from common.access import permission_or_404
from common.problems import InputProblem
from labeling.models.people import User

LEADS = "labeling.manage_labeling"


@permission_or_404(LEADS)
@require_POST
def archive_made(request: HttpRequest) -> HttpResponse:
    """Ask for an archive."""
    try:
        archive_ask(by=cast(User, request.user))
    except InputProblem as refused:
        messages.error(request, str(refused))
    return _back()


@permission_or_404(LEADS)
@require_safe
def archive_state(request: HttpRequest) -> HttpResponse:
    """The part of the page that shows the newest archive and its progress."""
    context = {"archive": newest_archive(), "own_chats": own_chats_to_label(cast(User, request.user))}
    return render(request, "alignment/archive/_state.html", context)


@permission_or_404(LEADS)
@require_safe
def archive_file(request: HttpRequest, archive_id: int) -> HttpResponseBase:
    """Download an archive."""
    archive = get_object_or_404(WorkspaceArchive, pk=archive_id, state=WorkspaceArchive.State.DONE)
    user = cast(User, request.user)
    try:
        archive_open_to(user)
        file = archive_path(archive.pk).open("rb")
    except InputProblem as refused:
        messages.error(request, str(refused))
        return _back()
    except OSError:
        raise Http404 from None
    archive_downloaded(archive=archive, by=user)
    name = f"workspace-{archive.asked_at:%Y-%m-%d}.zip"
    return FileResponse(file, as_attachment=True, filename=name, content_type="application/zip")


@permission_or_404(LEADS)
@require_POST
def archive_deleted(request: HttpRequest, archive_id: int) -> HttpResponse:
    """Delete an archive and its file."""
    archive = get_object_or_404(WorkspaceArchive, pk=archive_id)
    try:
        archive_delete(archive=archive, by=cast(User, request.user))
    except InputProblem as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, "Archive deleted.")
    return _back()


@permission_or_404(LEADS)
@require_POST
def archive_taken(request: HttpRequest) -> HttpResponse:
    """Take an archive into this empty workspace."""
    file = request.FILES.get("archive")
    if file is None or file.file is None:
        messages.error(request, "Choose the archive, a ZIP file.")
        return _back()
    try:
        taken = archive_take(source=file.file, name=file.name or "archive", by=cast(User, request.user))
    except InputProblem as refused:
        messages.error(request, str(refused))
        return _back()
    accounts = f"{taken.accounts:,} {'account' if taken.accounts == 1 else 'accounts'}"
    messages.success(request, f"Taken in: {taken.rows:,} rows, {accounts}. A lead activates accounts.")
    return redirect("labeling:set_list")


def _back() -> HttpResponse:
    return redirect(f"{reverse('alignment:export_page')}#archive")
