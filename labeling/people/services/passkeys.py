"""Passkeys that are refused: each in the log, and counted where it harms nobody else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allauth.core.internal import ratelimit
from allauth.mfa.webauthn.internal.auth import extract_user_from_response
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from labeling.models.people import User
from labeling.people.services.devices import device_of
from labeling.people.services.sign_in_log import sign_in_blocked, sign_in_failed

# NB: by account, anybody could lock it: the account is what an unproven credential claims.
LIMIT = {"passkey_failed": "20/m/key"}
TOO_MANY = "too_many_login_attempts"
WAIT = "Too many failed sign-ins. Wait a minute, then try again."
BECAUSE = "wrong passkey"


@contextmanager
def passkey_tried(*, request: HttpRequest, credential: Any) -> Iterator[None]:
    """
    Sign in by a passkey alone in here; a ValidationError means that it was refused.

    Refused ones count by address, or by the browser in which the account has signed in before.
    """
    login = _claimed_account(credential)
    device = device_of(request=request, login=login)
    key = f"device {device}" if device else ratelimit.get_ip(request)
    tried = ratelimit.consume(request, app="labeling.people", action="passkey_failed", config=LIMIT, key=key)
    if tried is None:
        sign_in_blocked(request=request, login=login)
        raise ValidationError(WAIT, code=TOO_MANY)
    try:
        yield
    except ValidationError:
        sign_in_failed(request=request, login=login, because=BECAUSE)
        raise
    tried.rollback()


@contextmanager
def second_step(*, request: HttpRequest, user: User, because: str = "") -> Iterator[None]:
    """Check a second factor in here. A ValidationError is logged: as a lock-out, else as `because`."""
    try:
        yield
    except ValidationError as error:
        if error.code == TOO_MANY:
            sign_in_blocked(request=request, login=user.get_username())
        elif because:
            sign_in_failed(request=request, login=user.get_username(), because=because)
        raise


def _claimed_account(credential: Any) -> str:
    """Return the user name of the account that a credential claims to be of; "" for none."""
    try:
        return str(extract_user_from_response(credential).get_username())
    except (AttributeError, ValidationError):  # no object, or of no account
        return ""
