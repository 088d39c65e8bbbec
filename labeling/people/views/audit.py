"""The audit log: a page with filters, and the same events as a file."""

from typing import Any, cast
from urllib.parse import urlencode

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from common.access import permission_or_404
from common.downloads import TYPES, lines_file
from labeling.models.people import User, Workspace
from labeling.people.core import KINDS
from labeling.people.forms import AuditFilterForm
from labeling.people.queries.audit import (
    COLUMNS,
    COMMAND_LINE,
    AuditFilter,
    audit_lines,
    audit_page,
    audit_people,
)
from labeling.people.services.audit import audit


@permission_or_404("labeling.manage_labeling")
@require_safe
def workspace_log(request: HttpRequest) -> HttpResponse:
    """Events, newest first, that match the filters; `?before=ID` goes on with older ones."""
    form, only = _filter(request)
    before = request.GET.get("before", "")
    older_than = int(before) if before.isdecimal() and len(before) < 19 else None
    page = audit_page(user=cast(User, request.user), before=older_than, only=only)
    context: dict[str, Any] = {
        "form": form,
        "page": page,
        "later": bool(before),
        "only": only,
        "query": urlencode(only.query),
        "without_object": urlencode(only.query | {"object": ""}),
        "without_token": urlencode(only.query | {"token_name": ""}),
        "kinds": TYPES,
        "sign_in_days": settings.LACE_SIGN_IN_LOG_DAYS,
    }
    return render(request, "labeling/people/workspace_log.html", context)


@permission_or_404("labeling.manage_labeling")
@require_safe
def workspace_log_file(request: HttpRequest, form: str) -> StreamingHttpResponse:
    """The events that match the filters as a file; the download is in the log, too."""
    if form not in TYPES:
        raise Http404
    user = cast(User, request.user)
    only = _filter(request)[1]
    audit(actor=user, verb="log exported", obj=Workspace.current(), format=form, **only.query)
    return lines_file(audit_lines(user=user, only=only), COLUMNS, name="audit-log", kind=form)


def _filter(request: HttpRequest) -> tuple[AuditFilterForm, AuditFilter]:
    """Return the form and the filter; what cannot be read narrows nothing and is named in the form."""
    people = [(name, name) for name in audit_people()]
    choices = {
        "people": [("", "Anybody"), *people, (COMMAND_LINE, "Workers and command line")],
        "kinds": [("", "All"), *((kind.key, kind.label) for kind in KINDS)],
    }
    form = AuditFilterForm(request.GET, **choices)
    form.is_valid()
    return form, AuditFilter(**{name: value for name, value in form.cleaned_data.items() if value})
