"""The inbox, and the threads of comments inside other pages."""

from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.inbox.queries import InboxRow, inbox_rows, thread, wants_mail
from common.inbox.services import comment_add, inbox_by_mail, inbox_read
from common.inbox.subjects import Subject, subjects_open_to
from common.models import InboxItem
from common.problems import FieldProblem

SHOWN = {
    "": "All",
    "assigned": "Assigned",
    "mentioned": "Mentioned",
    "answered": "Answered",
    "other": "Other",
}


@require_safe
def inbox_list(request: HttpRequest) -> HttpResponse:
    """Show the inbox by day, newest first; `show` and `unread` of the query string filter it."""
    user = _user(request)
    rows, unread = inbox_rows(user=user), bool(request.GET.get("unread"))
    show = request.GET.get("show", "")
    show = show if show in SHOWN else ""
    context: dict[str, Any] = {
        "rows": [row for row in rows if _is_in(row, show) and (row.item.read_at is None or not unread)],
        "new": sum(row.item.read_at is None for row in rows),
        "show": show,
        "unread": unread,
        "tabs_of_inbox": [
            (key, label, sum(_is_in(row, key) for row in rows)) for key, label in SHOWN.items()
        ],
        "mail": settings.INBOX_MAIL and bool(user.email),
        "by_mail": wants_mail(user=user),
    }
    return render(request, "common/inbox/inbox.html", context)


def _is_in(row: InboxRow, show: str) -> bool:
    kind = row.item.kind if row.item.kind in SHOWN else "other"
    return show in ("", kind)


@require_POST
def inbox_open(request: HttpRequest, item_id: int) -> HttpResponse:
    """Mark an item as read and go to what it is about."""
    item = get_object_or_404(InboxItem, pk=item_id, user=_user(request))
    subject = _subject_or_404(request, item.subject)
    inbox_read(user=_user(request), items=[item.pk])
    return redirect(subject.url)


@require_POST
def inbox_read_all(request: HttpRequest) -> HttpResponse:
    """Mark everything as read."""
    inbox_read(user=_user(request))
    return redirect("inbox")


@require_POST
def inbox_mail(request: HttpRequest) -> HttpResponse:
    """Store whether the inbox comes by e-mail too."""
    inbox_by_mail(user=_user(request), on="by_mail" in request.POST)
    return redirect("inbox")


@require_http_methods(["GET", "HEAD", "POST"])
def comments(request: HttpRequest, subject: str) -> HttpResponse:
    """Show the thread of a subject, as a fragment of its page or a page of its own; a POST adds a comment."""
    about = _subject_or_404(request, subject)
    part, text, refusal = request.headers.get("HX-Request") == "true", "", ""
    if request.method == "POST":
        text = request.POST.get("text", "")
        try:
            comment_add(subject=subject, about=about, text=text, by=_user(request))
        except FieldProblem as problem:
            refusal = problem.message
        else:
            if not part:
                return redirect(request.path)
            text = ""
    context = {"subject": subject, "about": about, "text": text, "problem": refusal}
    template = "common/inbox/_thread.html" if part else "common/inbox/thread.html"
    return render(request, template, context | {"comments": thread(subject)})


def _subject_or_404(request: HttpRequest, key: str) -> Subject:
    try:
        return subjects_open_to(_user(request), [key])[key]
    except KeyError:
        raise Http404 from None


def _user(request: HttpRequest) -> AbstractUser:
    return cast(AbstractUser, request.user)
