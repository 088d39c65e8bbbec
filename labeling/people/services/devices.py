"""Browsers in which an account has signed in: wrong passwords from elsewhere do not hold them up."""

import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core import signing
from django.db.models import Q
from django.http import HttpRequest, HttpResponse

from labeling.models.people import User

KNOWN_FOR = timedelta(days=180)
SALT = "labeling.people.device"


def cookie_name() -> str:
    """Return the name of the cookie: each workspace on a machine has its own."""
    return f"{settings.COOKIE_PREFIX}device_{settings.SITE_NAME}"


def device_remember(*, request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Mark the browser with a signed cookie that names the account. It signs nobody in."""
    account, number = _read(request)
    if account != user.pk:
        number = secrets.token_urlsafe(12)
    response.set_cookie(
        cookie_name(),
        signing.dumps([user.pk, number], salt=SALT),
        max_age=KNOWN_FOR,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def device_of(*, request: HttpRequest, login: str) -> str:
    """Return the number of the browser if this account has signed in there; "" for an unknown one."""
    account, number = _read(request)
    if account is None:
        return ""
    known = User.objects.filter(Q(username__iexact=login) | Q(email__iexact=login), pk=account)
    return number if known.exists() else ""


def _read(request: HttpRequest) -> tuple[int | None, str]:
    try:
        value: Any = signing.loads(request.COOKIES.get(cookie_name(), ""), salt=SALT, max_age=KNOWN_FOR)
        return int(value[0]), str(value[1])
    except (signing.BadSignature, TypeError, ValueError, IndexError):
        return None, ""
