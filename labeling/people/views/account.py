"""One's own account: password, second factor, single sign-on and sessions; sign-in in two steps."""

from typing import Any, cast

from allauth.account import views as allauth
from allauth.mfa.base import views as mfa
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes import views as recovery
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.mfa.webauthn.internal import auth
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.views.decorators.http import require_POST, require_safe

from common.access import found_or_404
from common.problems import InputProblem
from labeling.models.people import User
from labeling.people.queries.second_factor import is_required
from labeling.people.queries.sessions import own_session, session_rows
from labeling.people.services.second_factor import LAST, SecondFactorAdapter, passkey_rename
from labeling.people.services.sessions import session_end, sessions_revoke
from labeling.people.services.sign_on import sign_on_disconnect

Authenticate, Reauthenticate = mfa.AuthenticateView, mfa.ReauthenticateView
ReauthenticateByPassword = allauth.ReauthenticateView
ActivateApp, DeactivateApp = totp.ActivateTOTPView, totp.DeactivateTOTPView
SignInByPasskey, ReauthenticateByPasskey = webauthn.LoginWebAuthnView, webauthn.ReauthenticateWebAuthnView
NewCodes, DownloadCodes = recovery.GenerateRecoveryCodesView, recovery.DownloadRecoveryCodesView


class ShowCodes(recovery.ViewRecoveryCodesView):  # type: ignore[misc]  # allauth has no types
    """Show the recovery codes that are left."""

    http_method_names = ("get", "head")


@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show how one signs in, and where one is signed in."""
    user = cast(User, request.user)
    own = {one.type: one for one in Authenticator.objects.filter(user=user)}
    codes = own.get(Authenticator.Type.RECOVERY_CODES)
    context = {
        "app": own.get(Authenticator.Type.TOTP),
        "passkeys": Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN).order_by("pk"),
        "codes": codes,
        "codes_left": len(codes.wrap().get_unused_codes()) if codes else 0,
        "due": getattr(user, "second_factor_due", False),
        "required": is_required(user=user),
        "sign_on": settings.LACE_SSO_NAME if settings.LACE_SSO_ISSUER else "",
        "connected": SocialAccount.objects.filter(user=user).first(),
        "sessions": session_rows(user=user, current=request.session.session_key),
    }
    return render(request, "labeling/people/account.html", context)


class AddPasskey(webauthn.AddWebAuthnView):  # type: ignore[misc]  # allauth has no types
    """Add a passkey that signs in without a password."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Ask the device for a key that it stores, and to check who is there."""
        context = super().get_context_data(**kwargs)
        options = auth.begin_registration(self.request.user, True)
        return {**context, "options": options}


class RenamePasskey(webauthn.EditWebAuthnView):  # type: ignore[misc]
    """Give a passkey another name."""

    success_url = reverse_lazy("mfa_index")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer 404 for another one's before the password is asked for."""
        found_or_404(self.get_queryset().filter(pk=kwargs["pk"]).first())
        return cast(HttpResponse, super().dispatch(request, *args, **kwargs))

    def form_valid(self, form: Any) -> HttpResponse:
        """Store it."""
        passkey_rename(passkey=self.object, name=form.cleaned_data["name"])
        messages.success(self.request, "Passkey renamed.")
        return redirect("mfa_index")


class RemovePasskey(webauthn.RemoveWebAuthnView):  # type: ignore[misc]
    """Remove a passkey, but not the last factor of an account that has to have one."""

    success_url = reverse_lazy("mfa_index")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer 404 for another one's before the password is asked for."""
        found_or_404(self.get_queryset().filter(pk=kwargs["pk"]).first())
        return cast(HttpResponse, super().dispatch(request, *args, **kwargs))

    def form_valid(self, form: Any) -> HttpResponse:
        """Remove it."""
        if not SecondFactorAdapter().can_delete_authenticator(self.get_object()):
            messages.error(self.request, LAST)
            return redirect("mfa_index")
        return cast(HttpResponse, super().form_valid(form))


@require_POST
def own_session_end(request: HttpRequest, session_id: int) -> HttpResponse:
    """Sign one of one's own browsers out."""
    user = cast(User, request.user)
    session = found_or_404(own_session(user=user, session_id=session_id))
    session_end(session=session, by=user)
    messages.success(request, "That browser is signed out.")
    return redirect("mfa_index")


@require_POST
def own_sessions_end(request: HttpRequest) -> HttpResponse:
    """Sign all one's own browsers out but this one."""
    user = cast(User, request.user)
    ended = sessions_revoke(user=user, by=user, keep=request.session.session_key)
    messages.success(request, f"{ended} other session{'' if ended == 1 else 's'} ended.")
    return redirect("mfa_index")


@require_POST
def sign_on_removed(request: HttpRequest) -> HttpResponse:
    """Disconnect the account from single sign-on."""
    try:
        sign_on_disconnect(user=cast(User, request.user))
    except InputProblem as problem:
        messages.error(request, str(problem))
    else:
        messages.success(request, f"{settings.LACE_SSO_NAME} is disconnected.")
    return redirect("mfa_index")
