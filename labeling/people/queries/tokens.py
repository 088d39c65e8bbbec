"""A user's API tokens and the scopes that they may grant."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from labeling.models.people import ApiToken, User

ENDED_SHOWN = 20


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token as its user sees it, without its secret."""

    id: int
    name: str
    # Readable names, without scopes that the user has lost since: these grant nothing.
    scopes: Sequence[str]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    state: str  # "in use", "expired" or "revoked"

    @property
    def ended(self) -> bool:
        """Whether the token is expired or revoked."""
        return self.state != "in use"


def own_scopes(*, user: User) -> dict[str, str]:
    """Map the code name of each permission that the user has to its readable name."""
    return {
        code: words.removeprefix("Can ").capitalize()
        for code, words in User._meta.permissions
        if user.has_perm(f"labeling.{code}")
    }


def token_rows(*, user: User) -> list[TokenRow]:
    """List the user's tokens: those in use, then the latest that ended, newest first."""
    words = own_scopes(user=user)
    rows = [_row(token, words) for token in ApiToken.objects.filter(user=user).order_by("-pk")]
    ended = [row for row in rows if row.ended]
    return [row for row in rows if not row.ended] + ended[:ENDED_SHOWN]


def own_token(*, user: User, token_id: int) -> ApiToken | None:
    """Return the user's own token of that id, or None."""
    return ApiToken.objects.filter(user=user, pk=token_id).first()


def _row(token: ApiToken, words: dict[str, str]) -> TokenRow:
    return TokenRow(
        id=token.pk,
        name=token.name,
        scopes=[words[code] for code in words if code in token.scopes],
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        state=_state(token),
    )


def _state(token: ApiToken) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= timezone.now():
        return "expired"
    return "in use"
