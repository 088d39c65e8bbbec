"""Notes whence and when users come, ends sessions in time, and asks for a required second factor first."""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.conf import settings
from django.contrib.auth import logout
from django.db import Error
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone

from common.memory import memory
from labeling.models.people import User
from labeling.people.queries.second_factor import came_by_sign_on
from labeling.people.services.origin import answering
from labeling.people.services.sessions import session_note

Handler = Callable[[HttpRequest], HttpResponse]
NOTED_EVERY = timedelta(hours=1)
SEEN = "seen_at"  # in a session, in seconds


def note_origin(get_response: Handler) -> Handler:
    """Let the audit log and mails say from where a change was made."""

    def handle(request: HttpRequest) -> HttpResponse:
        with answering(request):
            return get_response(request)

    return handle


def note_last_seen(get_response: Handler) -> Handler:
    """Store when a signed-in user asked for a page: at most one write an hour; programs do not count."""

    def handle(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        # NB: only where the page has read the user: this reads nothing of its own.
        user = getattr(request, "_cached_user", None)
        if isinstance(user, User) and user.is_active and user.scopes is None:
            _note(user)
            _note_session(request)
        return response

    return handle


def session_limits(get_response: Handler) -> Handler:
    """Sign out whoever has not opened a page for too long, or signed in too long ago.

    Sessions that did not begin with a sign-in, such as those of tests, have no limits.
    """

    def handle(request: HttpRequest) -> HttpResponse:
        session, now = request.session, int(time.time())
        if signed_in := session.get(AUTHENTICATION_METHODS_SESSION_KEY):
            since = int(signed_in[0]["at"])
            seen = session.get(SEEN, since)
            idle = settings.LACE_SESSION_IDLE_HOURS * 3600
            if now - seen > idle or now - since > settings.SESSION_COOKIE_AGE:
                logout(request)
            elif now - seen > NOTED_EVERY.total_seconds():
                session[SEEN] = now
        return get_response(request)

    return handle


def _note(user: User) -> None:
    now = timezone.now()
    if user.last_seen_at is not None and user.last_seen_at > now - NOTED_EVERY:
        return
    # A database that takes no writes is not tried again by each page.
    if memory.add(f"seen-{user.pk}", True, NOTED_EVERY.total_seconds()):
        older = Q(last_seen_at=None) | Q(last_seen_at__lte=now - NOTED_EVERY)
        with suppress(Error):
            User.objects.filter(older, pk=user.pk).update(last_seen_at=now)


def _note_session(request: HttpRequest) -> None:
    """Note the use of a session that began with a sign-in: programs and tests make others."""
    key = request.session.session_key
    if key is None or AUTHENTICATION_METHODS_SESSION_KEY not in request.session:
        return
    if memory.add(f"session-{key}", True, NOTED_EVERY.total_seconds()):
        with suppress(Error):
            session_note(request)


class SecondFactorFirst:
    """Leads whoever has to have a second factor, and has none, to the page that sets one up."""

    # Setting it up, changing the password and signing out.
    OPEN = ("account_", "mfa_")
    SAYS = "Set up a second factor on your account page first."

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer as ever."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """Return another answer for such a user. NB: tokens sign in later, and have no session."""
        user, match = request.user, request.resolver_match
        if match is None or not getattr(user, "second_factor_due", False):
            return None
        if match.view_name.startswith(self.OPEN) or came_by_sign_on(request):
            return None
        if request.path.startswith("/api/"):
            return JsonResponse({"detail": self.SAYS}, status=403)
        if "HX-Request" in request.headers:  # a part of a page must not become another page
            return HttpResponse(status=204)
        return redirect("mfa_index")
