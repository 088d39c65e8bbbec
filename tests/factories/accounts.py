"""People who have not signed in yet, links for them, and sessions."""

from datetime import timedelta
from typing import Any

from allauth.usersessions.models import UserSession
from django.contrib.auth.models import Group
from django.utils import timezone

from labeling.models.people import Invitation, Role, User
from labeling.people.services.invitations import digest
from labeling.people.services.sign_in import reset_path
from tests.factories.rows import make_user

UNKNOWN = 987_654_320


def stored_people(lead: User, text: str) -> dict[str, Any]:
    """Somebody who has not signed in yet, with the links that lead there; a group without members."""
    person, secret = make_user(f"{text}-person", Role.AUTHOR), f"{text}-secret"
    until = timezone.now() + timedelta(days=1)
    invitation = Invitation.objects.create(
        role=Role.RATER, digest=digest(secret), created_by=lead, expires_at=until
    )
    uidb36, key = reset_path(person).split("/")[-3:-1]
    return {
        "person_id": person.pk,
        "uidb36": uidb36,
        "reset_key": key,
        "token": secret,
        "invitation_id": invitation.pk,
        "pk": UNKNOWN,
        "gone_session": UNKNOWN,
        "group_id": Group.objects.create(name=f"{text}-shift").pk,
    }


def stored_session(user: User, text: str) -> int:
    """A browser in which the account is signed in."""
    row = UserSession.objects.create(
        user=user, ip="192.0.2.7", session_key=f"{text}-session", user_agent=text
    )
    return int(row.pk)
