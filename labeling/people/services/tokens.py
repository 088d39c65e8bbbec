"""API tokens: made, shown once, used, revoked. Only a digest is kept."""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from common.problems import FieldProblem
from labeling.models.people import ApiToken, User
from labeling.people.queries.tokens import own_scopes
from labeling.people.services.audit import audit

PREFIX = "lace_"  # tells people, and those who search files for leaked keys, what it is
USE_NOTED_EVERY = timedelta(minutes=1)


class TokenRefused(Exception):
    """The token opens nothing: unknown, revoked, expired, or of an account that is switched off."""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made; `secret` is what goes into the header, and is known here and now only."""

    token: ApiToken
    secret: str = field(repr=False)


@sensitive_variables("secret")
@transaction.atomic
def token_create(*, user: User, name: str, scopes: Collection[str], days: int | None) -> NewToken:
    """
    Make a token.

    Parameters
    ----------
    name : unlike the user's other tokens in use.
    scopes : code names of rights that the user has; at least one.
    days : how long it is good; None = until it is revoked.

    Raises FieldProblem.
    """
    own = own_scopes(user=user)
    if not scopes or not own.keys() >= set(scopes):
        raise FieldProblem("scopes", "choose among your own rights")
    now = timezone.now()
    in_use = ApiToken.objects.filter(user=user, revoked_at=None).exclude(expires_at__lte=now)
    if in_use.filter(name=name).exists():
        raise FieldProblem("name", "you have a token of this name; revoke it first, or take another name")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        digest=_digest(secret),
        scopes=[code for code in own if code in scopes],
        expires_at=None if days is None else now + timedelta(days=days),
    )
    audit(actor=user, verb="token created", obj=token, name=name, scopes=token.scopes, days=days)
    return NewToken(token, secret)


@transaction.atomic
def token_revoke(*, token: ApiToken, by: User) -> None:
    """End a token now; a second time changes nothing."""
    ended = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    if ended:
        audit(actor=by, verb="token revoked", obj=token, name=token.name)


@sensitive_variables("secret")
def token_user(*, secret: str) -> tuple[User, ApiToken]:
    """
    Whose token this is; the user's rights are narrowed to its scopes for this request.

    The time this takes tells nothing of the tokens there are: digests are compared, by the index.

    Raises TokenRefused.
    """
    now = timezone.now()
    found = ApiToken.objects.select_related("user").filter(digest=_digest(secret), revoked_at=None)
    token = found.filter(Q(expires_at=None) | Q(expires_at__gt=now), user__is_active=True).first()
    if token is None:
        raise TokenRefused
    if token.last_used_at is None or token.last_used_at <= now - USE_NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    token.user.scopes = frozenset(token.scopes)
    return token.user, token


def _digest(secret: str) -> str:
    # NB: no salt and no slow hash: 32 random bytes can't be guessed, and the digest must be found by index.
    return hashlib.sha256(secret.encode()).hexdigest()
