"""Sign-in by django-allauth: no sign-up, own words and links, keys that reset a password."""

import logging
from smtplib import SMTPException
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.utils import user_pk_to_url_str
from allauth.core.internal import ratelimit
from django.contrib import messages
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse

from labeling.models.people import User
from labeling.people.queries.second_factor import misses_one
from labeling.people.services.audit import acting, audit

logger = logging.getLogger(__name__)


class Accounts(AuthenticationBackend):  # type: ignore[misc]  # allauth has no types
    """Accounts by user name or e-mail, each with what the pages ask of every request, in one query."""

    def get_user(self, user_id: int) -> User | None:
        """Return the account of a session; `second_factor_due` tells whether it has to set one up first."""
        user = User.objects.annotate(second_factor_due=misses_one()).filter(pk=user_id).first()  # type: ignore[no-redef]
        return user if user is not None and self.user_can_authenticate(user) else None


class ResetKeys(PasswordResetTokenGenerator):
    """Keys of links that set a password: one use, three days, and none for a deactivated account."""

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        return f"{super()._make_hash_value(user, timestamp)}{user.is_active}"

    def check_token(self, user: Any, token: str | None) -> bool:
        """Whether the key is good for this account today."""
        return user is not None and user.is_active and super().check_token(user, token)


def reset_path(user: User) -> str:
    """Return the address, without host, of a page on which the user sets a password."""
    return _path(f"{user_pk_to_url_str(user)}-{ResetKeys().make_token(user)}")


def _path(key: str) -> str:
    account, _, rest = key.partition("-")
    return reverse("account_reset_password_from_key", kwargs={"uidb36": account, "key": rest})


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

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Count failed sign-ins by address and account: by account alone, anybody could lock it."""
        login = str(credentials.get("email", credentials.get("username", ""))).lower()
        return f"{ratelimit.get_ip(request)}:{login}"

    def set_password(self, user: User, password: str) -> None:
        """Store a password that its user has set; what follows from it is logged in the user's name."""
        with acting(user), transaction.atomic():
            super().set_password(user, password)
            audit(actor=user, verb="password changed", obj=user, user=user.get_username())

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Return the link of an e-mail."""
        return str(self.request.build_absolute_uri(_path(key)))

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send an e-mail; the page says the same where the server fails, or it would name accounts."""
        try:
            super().send_mail(template_prefix, email, context)
        except (OSError, SMTPException) as error:
            logger.warning("password reset: the e-mail was not sent: %s", type(error).__name__)
