"""Sessions: noted while they are used, and ended by their user or a lead."""

from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from labeling.models.people import User
from labeling.people.services.audit import audit

NOTED_EVERY = timedelta(hours=1)


def session_note(request: HttpRequest) -> None:
    """Store that the session is in use; one from before the list existed enters it."""
    rows = UserSession.objects.filter(session_key=request.session.session_key)
    if not rows.update(last_seen_at=timezone.now()):
        UserSession.objects.create_from_request(request)


@transaction.atomic
def session_end(*, session: UserSession, by: User) -> None:
    """Sign one browser out."""
    person = session.user
    Session.objects.filter(pk=session.session_key).delete()
    session.delete()
    audit(actor=by, verb="sessions revoked", obj=person, user=person.get_username(), sessions=1)


@transaction.atomic
def sessions_revoke(*, user: User, by: User, keep: str | None = None) -> int:
    """Sign all browsers of a user out but the one with the session `keep`; return how many."""
    ended = sessions_end(user=user, keep=keep)
    audit(actor=by, verb="sessions revoked", obj=user, user=user.get_username(), sessions=ended)
    return ended


def sessions_end(*, user: User, keep: str | None = None) -> int:
    """Delete the stored sessions of a user; how many. Their contents are signed, so each is read."""
    key = str(user.pk)
    open_sessions = Session.objects.filter(expire_date__gt=timezone.now()).exclude(pk=keep).iterator()
    own = [one.pk for one in open_sessions if one.get_decoded().get(SESSION_KEY) == key]
    UserSession.objects.filter(user=user).exclude(session_key=keep).delete()
    return Session.objects.filter(pk__in=own).delete()[0]
