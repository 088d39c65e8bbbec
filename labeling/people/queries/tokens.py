"""A user's API tokens and the scopes that they may grant."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from labeling.models.people import ApiToken, AuditEvent, User

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
    # Why it was revoked, where its user did not do it on the page.
    reason: str = ""

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
    tokens, why = ApiToken.objects.filter(user=user).order_by("-pk"), _reasons(user)
    rows = [_row(token, words, why.get(token.pk, "")) for token in tokens]
    ended = [row for row in rows if row.ended]
    return [row for row in rows if not row.ended] + ended[:ENDED_SHOWN]


def tokens_in_use(*, user: User) -> QuerySet[ApiToken]:
    """Return the user's tokens that still open something, oldest first."""
    unrevoked = ApiToken.objects.filter(user=user, revoked_at=None).order_by("pk")
    return unrevoked.exclude(expires_at__lte=timezone.now())


def own_token(*, user: User, token_id: int) -> ApiToken | None:
    """Return the user's own token of that id, or None."""
    return ApiToken.objects.filter(user=user, pk=token_id).first()


def _reasons(user: User) -> dict[int, str]:
    """Return by token id why tokens of this user were revoked."""
    ids = ApiToken.objects.filter(user=user).exclude(revoked_at=None).values("pk")
    events = AuditEvent.objects.filter(object_type=ApiToken._meta.label_lower, object_id__in=ids)
    revoked = events.filter(verb="token revoked").values_list("object_id", "detail")
    return {pk: str(detail.get("reason", "")) for pk, detail in revoked}


def _row(token: ApiToken, words: dict[str, str], reason: str) -> TokenRow:
    return TokenRow(
        id=token.pk,
        name=token.name,
        scopes=[words[code] for code in words if code in token.scopes],
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        state=_state(token),
        reason=reason,
    )


def _state(token: ApiToken) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= timezone.now():
        return "expired"
    return "in use"
