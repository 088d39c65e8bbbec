"""Pages of API tokens and workspace settings."""

from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from common.access import permission_or_404
from common.drafts.middleware import ANSWERED
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.people.forms import SettingsForm, TokenForm
from labeling.people.queries.audit import audit_page
from labeling.people.queries.tokens import own_scopes, own_token, token_rows
from labeling.people.queries.workspace import set_up_hidden
from labeling.people.services.tokens import NewToken, token_create
from labeling.people.services.tokens import token_revoke as revoke
from labeling.people.services.workspace import rules_now, workspace_change

NEWEST = 10


@require_http_methods(["GET", "POST"])
@sensitive_variables("new_token")
def token_list(request: HttpRequest) -> HttpResponse:
    """List tokens and create one; a new token is shown only in this response.

    NB: no redirect after the POST: session, cookie and address would store the token.
    """
    user = cast(User, request.user)
    form = TokenForm(request.POST or None, scopes=own_scopes(user=user))
    new_token = _create(form, user) if request.method == "POST" and form.is_valid() else None
    if new_token is not None:
        form = TokenForm(scopes=own_scopes(user=user))
    context = {"tokens": token_rows(user=user), "form": form, "new_token": new_token}
    answer = render(request, "labeling/people/token_list.html", context)
    if new_token is not None:
        answer[ANSWERED] = "yes"
    return answer


@require_POST
def token_revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke one of the user's tokens."""
    user = cast(User, request.user)
    token = own_token(user=user, token_id=token_id)
    if token is None:
        raise Http404
    revoke(token=token, by=user)
    messages.success(request, f"Token {token.name} revoked. Programs can no longer use it.")
    return redirect("labeling:token_list")


def _create(form: TokenForm, user: User) -> NewToken | None:
    fields = form.cleaned_data
    try:
        return token_create(
            user=user, name=fields["name"], scopes=fields["scopes"], days=fields["expires"] or None
        )
    except FieldProblem as problem:
        form.add_error(problem.field, f"{problem.message[:1].upper()}{problem.message[1:]}.")
        return None


@permission_or_404("labeling.manage_labeling")
@require_http_methods(["GET", "POST"])
def workspace_settings(request: HttpRequest) -> HttpResponse:
    """The workspace settings and the latest audit events."""
    # NB: a form with no box ticked is empty, but it was submitted.
    form = SettingsForm(request.POST if request.method == "POST" else None, initial=rules_now())
    if request.method == "POST" and form.is_valid():
        workspace_change(rules=form.cleaned_data, by=cast(User, request.user))
        messages.success(request, "Settings saved. Rules for raters apply from the next answer on.")
        return redirect("labeling:workspace")
    rows = audit_page(user=cast(User, request.user)).rows[:NEWEST]
    context = {"form": form, "rows": rows, "set_up_hidden": set_up_hidden()}
    return render(request, "labeling/people/workspace.html", context)
