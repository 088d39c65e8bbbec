"""Notes when users were last seen."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from django.core.cache import cache
from django.db import Error
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from labeling.models.people import User

Handler = Callable[[HttpRequest], HttpResponse]
NOTED_EVERY = timedelta(hours=1)


def note_last_seen(get_response: Handler) -> Handler:
    """Store when a signed-in user asked for a page: at most one write an hour; programs do not count."""

    def handle(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        # NB: only where the page has read the user: this reads nothing of its own.
        user = getattr(request, "_cached_user", None)
        if isinstance(user, User) and user.is_active and user.scopes is None:
            _note(user)
        return response

    return handle


def _note(user: User) -> None:
    now = timezone.now()
    if user.last_seen_at is not None and user.last_seen_at > now - NOTED_EVERY:
        return
    # A database that takes no writes is not tried again by each page.
    if cache.add(f"seen-{user.pk}", True, NOTED_EVERY.total_seconds()):
        older = Q(last_seen_at=None) | Q(last_seen_at__lte=now - NOTED_EVERY)
        with suppress(Error):
            User.objects.filter(older, pk=user.pk).update(last_seen_at=now)
