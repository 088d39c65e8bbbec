"""Sign-in by django-allauth: no sign-up, own words and links, keys that reset a password."""

from typing import Any, cast

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.utils import user_pk_to_url_str
from allauth.core.internal import ratelimit
from django.contrib import messages
from django.contrib.auth.models import Permission
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Subquery
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from labeling.models.people import SecondFactor, User, Workspace
from labeling.people.queries.second_factor import misses_one
from labeling.people.services.audit import acting
from labeling.people.services.devices import device_of, device_remember
from labeling.people.services.origin import address_of
from labeling.people.services.sign_in_log import sign_in_blocked, sign_in_failed, sign_in_succeeded

# As ACCOUNT_RATE_LIMITS, without the limit by address.
KNOWN_BROWSER = {"login_failed": "5/5m/key"}


class Accounts(AuthenticationBackend):  # type: ignore[misc]  # allauth has no types
    """Accounts by user name or e-mail, each with what the pages ask of every request."""

    def get_user(self, user_id: int) -> User | None:
        """
        Return the account of a session; `second_factor_due` tells whether it has to set one up first.

        One query; two where the workspace requires second factors.
        """
        policy = Subquery(Workspace.objects.values("second_factor")[:1])
        user: Any = User.objects.annotate(policy=policy).filter(pk=user_id).first()
        if user is None or not self.user_can_authenticate(user):
            return None
        if user.policy not in (None, SecondFactor.OFF):
            user.second_factor_due = User.objects.filter(misses_one(), pk=user_id).exists()
        return cast(User, user)

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Return the permissions of an account and its groups: one query where Django has two."""
        if user_obj.is_superuser or user_obj.is_anonymous or not user_obj.is_active or obj is not None:
            return set(super().get_all_permissions(user_obj, obj))
        if not hasattr(user_obj, "_perm_cache"):
            own = Permission.objects.filter(user=user_obj).order_by()
            both = own.union(Permission.objects.filter(group__user=user_obj).order_by())
            names = both.values_list("content_type__app_label", "codename")
            user_obj._perm_cache = {f"{app}.{name}" for app, name in names}
        return set(user_obj._perm_cache)


class ResetKeys(PasswordResetTokenGenerator):
    """Keys of links that set a password: one use, three days, and none for a deactivated account."""

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        return f"{super()._make_hash_value(user, timestamp)}{user.is_active}"

    def check_token(self, user: Any, token: str | None) -> bool:
        """Whether the key is good for this account today."""
        return user is not None and user.is_active and super().check_token(user, token)


def reset_path(user: User) -> str:
    """Return the address, without host, of a page on which the user sets a password."""
    names = {"uidb36": user_pk_to_url_str(user), "key": ResetKeys().make_token(user)}
    return reverse("account_reset_password_from_key", kwargs=names)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """What the workbench does otherwise than allauth."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": "User name or password is wrong. Capitals count in passwords.",
        "email_password_mismatch": "E-mail or password is wrong. Capitals count in passwords.",
        "too_many_login_attempts": "Too many failed sign-ins. Wait five minutes, then try again.",
        "rate_limited": "Too many wrong codes. Wait five minutes, then try again.",
        "incorrect_password": "This is not your password. Type it again.",
        "enter_current_password": "This is not your current password. Type it again.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody signs up: leads create accounts and invite."""
        return False

    def add_message(
        self, request: HttpRequest, level: int, *args: Any, message: str | None = None, **options: Any
    ) -> None:
        """Show what is wrong with a passkey. Leave others to the pages: allauth's say nothing needed."""
        if level == messages.ERROR and message:
            messages.error(request, message)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the client's address, by which limits count."""
        return address_of(request)

    # ---------- limits of wrong passwords ----------

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Raise where too many sign-ins have failed. A browser in which the account signed in before counts
        alone: whoever shares its address does not hold it up."""
        login = _login(credentials)
        try:
            if not device_of(request=request, login=login):
                super().pre_authenticate(request, **credentials)
                return
            key = self._get_login_attempts_cache_key(request, **credentials)
            self._login_failed_rl_usage = ratelimit.consume(
                request, app="allauth.account", action="login_failed", config=KNOWN_BROWSER, key=key
            )
            if not self._login_failed_rl_usage:
                raise self.validation_error("too_many_login_attempts")
        except ValidationError:
            sign_in_blocked(request=request, login=login)
            raise

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Count failed sign-ins by account and known browser, else by account and address.

        By account alone, anybody could lock it.
        """
        login = _login(credentials)
        device = device_of(request=request, login=login)
        return f"{f'device {device}' if device else ratelimit.get_ip(request)}:{login}"

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Record it."""
        sign_in_failed(request=request, login=_login(credentials), because="wrong password")

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        """Say that the account is deactivated, to whoever knows its password."""
        sign_in_failed(request=request, login=user.get_username(), because="account deactivated")
        return cast(HttpResponse, super().respond_user_inactive(request, user))

    def post_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponse:
        """Record the sign-in and mark the browser."""
        response = cast(HttpResponse, super().post_login(request, user, **options))
        sign_in_succeeded(request=request, user=user)
        device_remember(request=request, response=response, user=user)
        return response

    # ---------- passwords ----------

    def set_password(self, user: User, password: str) -> None:
        """Store a password that its user has set; what follows from it is logged in the user's name."""
        with acting(user), transaction.atomic():
            super().set_password(user, password)


def _login(credentials: dict[str, Any]) -> str:
    return str(credentials.get("email", credentials.get("username", ""))).strip().lower()
