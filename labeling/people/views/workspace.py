"""Workspace settings and audit log."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from common.access import permission_or_404
from labeling.models.people import User
from labeling.people.forms.workspace import SettingsForm
from labeling.people.queries.audit import audit_page
from labeling.people.services.workspace import rules_now, workspace_change

NEWEST = 10


@permission_or_404("labeling.manage_labeling")
@require_http_methods(["GET", "POST"])
def workspace_settings(request: HttpRequest) -> HttpResponse:
    """The rules of labelling and the latest audit events."""
    # NB: a form with no box ticked is empty, but it was submitted.
    form = SettingsForm(request.POST if request.method == "POST" else None, initial=rules_now())
    if request.method == "POST" and form.is_valid():
        workspace_change(rules=form.cleaned_data, by=cast(User, request.user))
        messages.success(request, "Settings saved. They apply from the next answer on.")
        return redirect("labeling:workspace")
    rows = audit_page(user=cast(User, request.user)).rows[:NEWEST]
    return render(request, "labeling/people/workspace.html", {"form": form, "rows": rows})


@permission_or_404("labeling.manage_labeling")
@require_safe
def workspace_log(request: HttpRequest) -> HttpResponse:
    """Every event, newest first; `?before=ID` goes on with older ones."""
    before = request.GET.get("before", "")
    older_than = int(before) if before.isdecimal() and len(before) < 19 else None
    page = audit_page(user=cast(User, request.user), before=older_than)
    return render(request, "labeling/people/workspace_log.html", {"page": page, "later": bool(before)})
