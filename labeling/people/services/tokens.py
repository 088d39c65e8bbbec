"""API tokens: create, authenticate, revoke. Only a digest is stored."""

import hashlib
import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import OperationalError, transaction
from django.db.models import Q
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from common.problems import FieldProblem
from labeling.models.people import ApiToken, User
from labeling.people.queries.tokens import own_scopes, tokens_in_use
from labeling.people.services.audit import audit

PREFIX = "lace_"  # lets users and secret scanners recognise a token
USE_NOTED_EVERY = timedelta(minutes=1)


class TokenRefused(Exception):
    """The token is not valid: unknown, revoked, expired, or its account is inactive."""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token; `secret` goes into the header and is not stored."""

    token: ApiToken
    secret: str = field(repr=False)


@sensitive_variables("secret")
@transaction.atomic
def token_create(*, user: User, name: str, scopes: Collection[str], days: int | None) -> NewToken:
    """
    Create a token.

    Parameters
    ----------
    name : differs from the user's other tokens in use.
    scopes : code names of permissions that the user has; at least one.
    days : lifetime; None = no expiry.

    Raises FieldProblem.
    """
    own = own_scopes(user=user)
    if not scopes or not own.keys() >= set(scopes):
        raise FieldProblem("scopes", "choose from your own permissions")
    if tokens_in_use(user=user).filter(name=name).exists():
        raise FieldProblem("name", "you have a token with this name; revoke it or choose another name")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        digest=_digest(secret),
        scopes=[code for code in own if code in scopes],
        expires_at=None if days is None else timezone.now() + timedelta(days=days),
    )
    audit(actor=user, verb="token created", obj=token, name=name, scopes=token.scopes, days=days)
    return NewToken(token, secret)


@transaction.atomic
def token_revoke(*, token: ApiToken, by: User | None, reason: str = "") -> None:
    """Revoke a token; repeating it changes nothing. `by`: None on the command line."""
    ended = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    if ended:
        because = {"reason": reason} if reason else {}
        audit(actor=by, verb="token revoked", obj=token, name=token.name, **because)


@sensitive_variables("secret")
def token_user(*, secret: str) -> tuple[User, ApiToken]:
    """
    Return the token and its user, limited to the token's scopes for this request.

    Digests are looked up by index, so that the response time reveals no stored token.

    Raises TokenRefused.
    """
    now = timezone.now()
    tokens = ApiToken.objects.select_related("user").filter(digest=_digest(secret), revoked_at=None)
    token = tokens.filter(Q(expires_at=None) | Q(expires_at__gt=now), user__is_active=True).first()
    if token is None:
        raise TokenRefused
    if token.last_used_at is None or token.last_used_at <= now - USE_NOTED_EVERY:
        # A program that only reads needs no database that takes writes.
        with suppress(OperationalError):
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    token.user.scopes = frozenset(token.scopes)
    return token.user, token


def _digest(secret: str) -> str:
    # NB: no salt and no slow hash: 32 random bytes can't be guessed, and the digest must be found by index.
    return hashlib.sha256(secret.encode()).hexdigest()
