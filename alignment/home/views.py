"""Home, the first page after sign-in: the sections of each of the user's roles."""

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from alignment.home.queries.author import author_home
from alignment.home.queries.glance import glance_rows
from alignment.home.queries.lead import lead_home
from alignment.home.queries.rater import rater_home
from alignment.home.queries.set_up import set_up
from common.access import permission_or_404
from labeling.models.people import Role, User
from labeling.people.services.workspace import set_up_hide
from labeling.rating.views.queue import queue_context


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show what waits for the user, the lead's sections first; explain an account without a role."""
    user = cast(User, request.user)
    roles = _roles(user)
    if not roles:
        return render(request, "no_role.html", status=403)
    context: dict[str, Any] = {"set_up": set_up(), "roles": roles}
    glance = glance_rows(user=user) if user.has_perm("labeling.see_judge") else []
    if Role.LEAD in roles:
        context["lead"] = lead_home(user=user, glance=glance)
    if Role.AUTHOR in roles:
        context["author"] = author_home(user=user, glance=glance)
    if Role.RATER in roles:
        own = rater_home(user=user)
        context |= {"rater": own, **queue_context(own.queue)}
    return render(request, "alignment/home/home.html", context)


def _roles(user: User) -> list[Role]:
    """Return the roles whose sections the user sees: those of the account, as far as its rights go.

    A lead has an author's rights, a superuser all: only the group shows them the other sections.
    """
    groups = set(user.groups.values_list("name", flat=True))
    lead = user.has_perm("labeling.manage_labeling")
    found = {
        Role.LEAD: lead,
        Role.AUTHOR: user.has_perm("labeling.see_judge") and (not lead or Role.AUTHOR in groups),
        Role.RATER: user.has_perm("labeling.label_chats") and (not lead or Role.RATER in groups),
    }
    return [role for role, shown in found.items() if shown]


@permission_or_404("labeling.manage_labeling")
@require_POST
def set_up_shown(request: HttpRequest) -> HttpResponse:
    """Hide the list of set-up steps, or show it again with `show`; for all leads."""
    shows = "show" in request.POST
    set_up_hide(hidden=not shows, by=cast(User, request.user))
    if not shows:
        messages.success(request, "Set-up list hidden. Settings shows it again.")
    elif set_up().finished:
        messages.success(request, "This workspace is set up: no step is left to list.")
    return redirect("home")
