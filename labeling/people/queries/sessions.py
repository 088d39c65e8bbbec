"""The sessions of an account: where it is signed in."""

from dataclasses import dataclass
from datetime import datetime

from allauth.usersessions.models import UserSession
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from labeling.models.people import User
from labeling.people.core import browser_name


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session that is open; `last_seen_at` is noted once an hour."""

    id: int
    browser: str
    address: str
    signed_in_at: datetime
    last_seen_at: datetime
    current: bool


def session_rows(*, user: User, current: str | None = None) -> list[SessionRow]:
    """Return the open sessions, the one of this key first, in two queries."""
    stored = {row.session_key: row for row in UserSession.objects.filter(user=user)}
    valid = Session.objects.filter(pk__in=stored, expire_date__gt=timezone.now())
    rows = [_row(stored[one.pk], current) for one in valid if _is_open(one, user)]
    return sorted(rows, key=lambda row: (not row.current, -row.last_seen_at.timestamp()))


def own_session(*, user: User, session_id: int) -> UserSession | None:
    """Return a session of this user."""
    return UserSession.objects.filter(user=user, pk=session_id).first()


def _is_open(session: Session, user: User) -> bool:
    """Whether the session signs the user in: a new password ends older ones without deleting them."""
    content = session.get_decoded()
    same = constant_time_compare(content.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash())
    return same and content.get(SESSION_KEY) == str(user.pk)


def _row(session: UserSession, current: str | None) -> SessionRow:
    return SessionRow(
        id=session.pk,
        browser=browser_name(session.user_agent) or "Unknown program",
        address=session.ip,
        signed_in_at=session.created_at,
        last_seen_at=session.last_seen_at,
        current=session.session_key == current,
    )
