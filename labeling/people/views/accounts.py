"""Sign-in, sign-out and passwords; the pages on which people create their own account."""

from typing import Any, cast

from allauth.account import views as allauth
from allauth.account.internal.flows.login import record_authentication
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from common.problems import FieldProblem, InputProblem
from labeling.models.people import Role, User
from labeling.people.forms import OwnAccountForm, WelcomeForm
from labeling.people.queries.people import accounts_exist
from labeling.people.queries.tokens import tokens_in_use
from labeling.people.services.devices import device_remember
from labeling.people.services.invitations import first_lead_create, invitation_accept, invitation_of
from labeling.people.services.sessions import session_note
from labeling.people.services.sign_in_log import sign_in_succeeded


@require_POST  # a link must not sign anybody out
def sign_out(request: HttpRequest) -> HttpResponse:
    """Sign out by allauth, which clears its sign-in state, and have the browser forget cached pages.

    The page itself removes this account's drafts from the browser.
    """
    response = cast(HttpResponse, allauth.logout(request))
    response["Clear-Site-Data"] = '"cache"'
    return response


Inactive, ResetSent = allauth.AccountInactiveView, allauth.PasswordResetDoneView


class SignIn(allauth.LoginView):  # type: ignore[misc]  # allauth has no types
    """Sign in; an empty workspace has nobody to sign in yet and leads to the first account."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form."""
        if not accounts_exist():
            return redirect("labeling:welcome")
        return cast(HttpResponse, super().get(request, *args, **kwargs))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the name of the provider of single sign-on; "" without one."""
        return {
            **super().get_context_data(**kwargs),
            "sign_on": settings.LACE_SSO_NAME if settings.LACE_SSO_ISSUER else "",
        }


class ChangePassword(allauth.PasswordChangeView):  # type: ignore[misc]
    """Change one's own password: other sessions end, and all API tokens are revoked."""

    success_url = reverse_lazy("mfa_index")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Lead an account without a password to the page that sets one."""
        if request.user.is_authenticated and not request.user.has_usable_password():
            return redirect("account_reset_password")
        return cast(HttpResponse, super().dispatch(request, *args, **kwargs))

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the password and name the revoked tokens."""
        names = [token.name for token in tokens_in_use(user=cast(User, self.request.user))]
        response = cast(HttpResponse, super().form_valid(form))
        messages.success(self.request, _changed(names))
        return response


def _changed(tokens: list[str]) -> str:
    """Return what a new password ended."""
    ended = "Password changed. Your other sessions ended."
    if not tokens:
        return ended
    words = f"Token {tokens[0]} is" if len(tokens) == 1 else f"{len(tokens)} tokens ({', '.join(tokens)}) are"
    return f"{ended} {words} revoked: create new ones for programs that still need access."


class ResetByMail(allauth.PasswordResetView):  # type: ignore[misc]
    """Ask for a link by e-mail; without an e-mail server the page says to ask a lead."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Send the link, where there is a server that sends it."""
        if not settings.INBOX_MAIL:
            return cast(HttpResponse, self.get(request, *args, **kwargs))
        return cast(HttpResponse, super().post(request, *args, **kwargs))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add whether e-mail is sent."""
        return {**super().get_context_data(**kwargs), "mail": settings.INBOX_MAIL}


@method_decorator(never_cache, name="dispatch")
class SetPassword(allauth.PasswordResetFromKeyView):  # type: ignore[misc]
    """Set a password by a link, which works once; then the user is signed in."""

    def render_to_response(self, context: dict[str, Any], **options: Any) -> HttpResponse:
        """Answer 404 for a link that opens nothing any more."""
        status = 404 if context.get("token_fail") else 200
        return cast(HttpResponse, super().render_to_response(context, status=status, **options))

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the password."""
        response = cast(HttpResponse, super().form_valid(form))
        messages.success(self.request, "Password set. You are signed in.")
        return response


@login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Create one's own account by an invitation, and sign in."""
    invitation = invitation_of(secret=token)
    if invitation is None:
        return render(request, "labeling/people/join_ended.html", status=404)
    if request.user.is_authenticated and request.method == "POST":
        raise Http404
    given = {"name": invitation.name, "email": invitation.email}
    form = OwnAccountForm(request.POST or None, initial=given)
    if form.is_valid() and (user := _joined(token, form)):
        return _signed_in(request, user)
    context = {"form": form, "role": Role(invitation.role).label, "by": invitation.created_by}
    return render(request, "labeling/people/join.html", context)


def _joined(token: str, form: OwnAccountForm) -> User | None:
    try:
        return invitation_accept(secret=token, **form.arguments)
    except FieldProblem as problem:
        form.refuse(problem)
    except InputProblem as problem:
        form.add_error(None, str(problem))
    return None


@login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def welcome(request: HttpRequest) -> HttpResponse:
    """Create the first account of an empty workspace; afterwards its link leads to the sign-in."""
    if accounts_exist():
        if request.method == "POST":
            raise Http404
        return redirect("account_login")
    form = WelcomeForm(request.POST or None, initial={"code": request.GET.get("code", "")})
    if form.is_valid() and (user := _first(form)):
        return _signed_in(request, user)
    return render(request, "labeling/people/welcome.html", {"form": form})


def _first(form: WelcomeForm) -> User | None:
    try:
        return first_lead_create(code=form.cleaned_data["code"], **form.arguments)
    except FieldProblem as problem:
        form.refuse(problem)
    except InputProblem as problem:
        form.add_error(None, str(problem))
    return None


def _signed_in(request: HttpRequest, user: User) -> HttpResponse:
    login(request, user)
    record_authentication(request, user, "password")
    session_note(request)
    sign_in_succeeded(request=request, user=user)
    messages.success(
        request, f"Welcome, {user.get_full_name() or user.get_username()}. Your account is ready."
    )
    response = redirect("home")
    device_remember(request=request, response=response, user=user)
    return response
