"""The People page: accounts, roles, groups and invitations; leads only."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import Group
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from common.access import found_or_404
from common.drafts.middleware import ANSWERED
from common.problems import FieldProblem, InputProblem
from common.site_address import site_address
from labeling.models.people import Invitation, User
from labeling.people.forms import GroupForm, InvitationForm, NewAccountForm, PersonForm
from labeling.people.queries.people import is_lead, open_work, people_page, person_row, rater_groups
from labeling.people.queries.sessions import own_session, session_rows
from labeling.people.services.invitations import (
    NewInvitation,
    invitation_create,
    invitation_renew,
    invitation_revoke,
)
from labeling.people.services.people import (
    account_activate,
    account_change,
    account_create,
    account_deactivate,
    group_create,
    group_delete,
    password_path,
)
from labeling.people.services.rights import check_manages
from labeling.people.services.second_factor import second_factor_reset
from labeling.people.services.sessions import session_end, sessions_revoke

View = Callable[..., HttpResponseBase]


def leads_only(view: View) -> View:
    """Guard a view: for everybody but leads and superusers the page does not exist."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not is_lead(user=cast(User, request.user)):
            raise Http404
        return view(request, *args, **kwargs)

    return guarded


def _person(person_id: int) -> User:
    return found_or_404(User.objects.filter(pk=person_id).first())


def _lead(request: HttpRequest) -> User:
    return cast(User, request.user)


@leads_only
@require_http_methods(["GET", "POST"])
@sensitive_variables("new")
def people(request: HttpRequest) -> HttpResponse:
    """List accounts, groups and invitations; create an invitation and send it by e-mail, or show its link."""
    form = InvitationForm(request.POST or None)
    new = _invited(form, _lead(request)) if form.is_valid() else None
    return _page(request, invite=form) if new is None else _invitation_answer(request, new)


@sensitive_variables("new", "link", "path")
def _invitation_answer(request: HttpRequest, new: NewInvitation) -> HttpResponse:
    """Say that the link goes by e-mail; where it does not, show it, in this answer alone.

    NB: no redirect with a link: session, cookie and address would store it.
    """
    if new.by_mail:
        messages.success(request, f"An e-mail to {new.invitation.email} is on its way.")
        return redirect("labeling:people")
    path = reverse("labeling:join", kwargs={"token": new.secret})
    link = site_address(path) if settings.INBOX_MAIL else request.build_absolute_uri(path)
    answer = _page(request, invitation=new.invitation, link=link)
    answer[ANSWERED] = "yes"
    return answer


def _page(request: HttpRequest, **more: Any) -> HttpResponse:
    context = {
        "page": people_page(),
        "invite": InvitationForm(),
        "group_form": GroupForm(),
        "mail": settings.INBOX_MAIL,
    } | more
    return render(request, "labeling/people/people.html", context)


def _invited(form: InvitationForm, by: User) -> NewInvitation | None:
    try:
        return invitation_create(by=by, **form.cleaned_data)
    except FieldProblem as problem:
        form.refuse(problem)
        return None


@leads_only
@require_POST
@sensitive_variables("new")
def invitation_renewed(request: HttpRequest, invitation_id: int) -> HttpResponse:
    """Make a new link in place of the one before, and send it, or with `link` show it."""
    invitation = found_or_404(Invitation.objects.filter(pk=invitation_id).first())
    try:
        by_mail = "link" not in request.POST
        new = invitation_renew(invitation=invitation, by=_lead(request), by_mail=by_mail)
    except InputProblem as problem:
        messages.error(request, str(problem))
        return redirect("labeling:people")
    return _invitation_answer(request, new)


@leads_only
@require_POST
def invitation_revoked(request: HttpRequest, invitation_id: int) -> HttpResponse:
    """End an invitation."""
    invitation = found_or_404(Invitation.objects.filter(pk=invitation_id).first())
    if invitation_revoke(invitation=invitation, by=_lead(request)):
        messages.success(request, "Invitation revoked. Its link no longer works.")
    else:
        messages.info(request, "The invitation was used or revoked before.")
    return redirect("labeling:people")


@leads_only
@require_http_methods(["GET", "POST"])
def person_new(request: HttpRequest) -> HttpResponse:
    """Create an account; the link that sets its password is shown only in this answer."""
    form = NewAccountForm(request.POST or None, initial={"roles": ["rater"]})
    if not form.is_valid():
        return render(request, "labeling/people/person_new.html", {"form": form})
    try:
        new = account_create(by=_lead(request), **form.cleaned_data)
    except FieldProblem as problem:
        form.refuse(problem)
        return render(request, "labeling/people/person_new.html", {"form": form})
    return _link_page(request, new.user, new.path, created=True)


@leads_only
@require_http_methods(["GET", "POST"])
def person(request: HttpRequest, person_id: int) -> HttpResponse:
    """One account: name, e-mail, roles, groups, password, access."""
    row = person_row(person=_person(person_id))
    user, groups = row.user, rater_groups()
    initial = {"name": user.get_full_name(), "email": user.email, "roles": row.roles} | {
        "groups": [group.pk for group in groups if group.name in row.groups]
    }
    form = PersonForm(request.POST if request.method == "POST" else None, groups=groups, initial=initial)
    if form.is_valid() and _changed(form, user, _lead(request)):
        messages.success(request, f"{row.name} changed. A new role counts from the next page on.")
        return redirect("labeling:people")
    context = {"row": row, "form": form, "groups": groups, "sessions": session_rows(user=user)}
    return render(request, "labeling/people/person.html", context)


def _changed(form: PersonForm, person: User, by: User) -> bool:
    try:
        account_change(person=person, by=by, **form.cleaned_data)
    except FieldProblem as problem:
        form.refuse(problem)
        return False
    except InputProblem as problem:
        form.add_error(None, str(problem))
        return False
    return True


@leads_only
@require_POST
def person_password(request: HttpRequest, person_id: int) -> HttpResponse:
    """Make a link with which the user sets a new password, and show it once."""
    user = _person(person_id)
    try:
        return _link_page(request, user, password_path(person=user, by=_lead(request)), created=False)
    except InputProblem as problem:
        return _refused(request, user, problem)


@leads_only
@require_http_methods(["GET", "POST"])
def person_deactivate(request: HttpRequest, person_id: int) -> HttpResponse:
    """Say what an account has open; then end its access."""
    user = _person(person_id)
    if request.method == "POST":
        try:
            account_deactivate(person=user, by=_lead(request))
        except InputProblem as problem:
            return _refused(request, user, problem)
        messages.success(request, f"{user.get_username()} is deactivated and signed out.")
        return redirect("labeling:people")
    context = {"row": person_row(person=user), "work": open_work(person=user)}
    return render(request, "labeling/people/person_deactivate.html", context)


@leads_only
@require_POST
def person_activate(request: HttpRequest, person_id: int) -> HttpResponse:
    """Give an account its access back."""
    user = _person(person_id)
    try:
        account_activate(person=user, by=_lead(request))
    except InputProblem as problem:
        return _refused(request, user, problem)
    messages.success(request, f"{user.get_username()} is active again, with the same roles and password.")
    return redirect("labeling:people")


@leads_only
@require_POST
def person_sessions_end(request: HttpRequest, person_id: int) -> HttpResponse:
    """Sign an account out everywhere."""
    user, lead = _person(person_id), _lead(request)
    try:
        check_manages(person=user, by=lead)
    except InputProblem as problem:
        return _refused(request, user, problem)
    keep = request.session.session_key if user.pk == lead.pk else None
    ended = sessions_revoke(user=user, by=lead, keep=keep)
    messages.success(request, f"{ended} session{'' if ended == 1 else 's'} of {user.get_username()} ended.")
    return redirect("labeling:person", user.pk)


@leads_only
@require_POST
def person_session_end(request: HttpRequest, person_id: int, session_id: int) -> HttpResponse:
    """Sign one browser of an account out."""
    user = _person(person_id)
    session = found_or_404(own_session(user=user, session_id=session_id))
    try:
        check_manages(person=user, by=_lead(request))
    except InputProblem as problem:
        return _refused(request, user, problem)
    session_end(session=session, by=_lead(request))
    messages.success(request, f"That browser of {user.get_username()} is signed out.")
    return redirect("labeling:person", user.pk)


@leads_only
@require_POST
def person_factor_reset(request: HttpRequest, person_id: int) -> HttpResponse:
    """Remove the second factors of somebody who has lost theirs."""
    user = _person(person_id)
    try:
        second_factor_reset(person=user, by=_lead(request))
    except InputProblem as problem:
        return _refused(request, user, problem)
    messages.success(request, f"{user.get_username()} signs in with the password alone now.")
    return redirect("labeling:person", user.pk)


@leads_only
@require_http_methods(["GET", "POST"])
def group_new(request: HttpRequest) -> HttpResponse:
    """Create a group of raters."""
    form = GroupForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            group = group_create(name=form.cleaned_data["name"], by=_lead(request))
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, f"Group {group.name} created. Open a person to add them to it.")
            return redirect("labeling:people")
    return _page(request, group_form=form)


@leads_only
@require_POST
def group_deleted(request: HttpRequest, group_id: int) -> HttpResponse:
    """Delete a group of raters that no job names."""
    group = found_or_404(Group.objects.filter(pk=group_id).first())
    try:
        group_delete(group=group, by=_lead(request))
    except InputProblem as problem:
        messages.error(request, str(problem))
    else:
        messages.success(request, f"Group {group.name} deleted.")
    return redirect("labeling:people")


def _link_page(request: HttpRequest, person: User, path: str, *, created: bool) -> HttpResponse:
    context = {"person": person, "link": request.build_absolute_uri(path), "created": created}
    answer = render(request, "labeling/people/person_link.html", context)
    answer[ANSWERED] = "yes"
    return answer


def _refused(request: HttpRequest, person: User, problem: InputProblem) -> HttpResponse:
    messages.error(request, str(problem))
    return redirect("labeling:person", person.pk)
