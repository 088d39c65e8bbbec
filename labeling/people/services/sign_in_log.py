"""Sign-ins in the audit log: each success, failures up to a number an hour, and how long entries stay."""

from datetime import timedelta
from hashlib import sha256
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from django.conf import settings
from django.core.cache import cache
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from common.memory import memory
from labeling.models.people import AuditEvent, User, Workspace
from labeling.people.core import SIGN_IN_VERBS, sign_in_ways
from labeling.people.services.audit import audit
from labeling.people.services.origin import address_of, current_browser

HOUR = 3600
# Entries of failed sign-ins an hour: from one address, for one account, and altogether.
FROM_ADDRESS, FOR_ACCOUNT, ALTOGETHER = 20, 30, 500
MORE = "further ones this hour are not listed"
# How often old entries are looked for, and how many are deleted at once.
LOOKED_EVERY, AT_ONCE = timedelta(hours=1), 5000


def sign_in_succeeded(*, request: HttpRequest, user: User) -> None:
    """Record that a user signed in, and with what."""
    records = get_authentication_records(request, user)
    audit(
        actor=user,
        verb="sign-in succeeded",
        obj=user,
        user=user.get_username(),
        ways=sign_in_ways(records),
        browser=current_browser(),
    )


def sign_out_done(*, user: User | None, **_: Any) -> None:
    """Record that a user signed out."""
    if user is not None and user.pk is not None:
        audit(actor=user, verb="sign-out done", obj=user, user=user.get_username())


def sign_in_failed(*, request: HttpRequest, login: str, because: str) -> None:
    """Record a failed sign-in. NB: an unknown name is not stored: it may be somebody's password."""
    user = _account(login)
    detail = {"user": user.get_username()} if user else {"account": "unknown"}
    room = _room(address_of(request), login)
    if room:
        more = {"note": MORE} if room == 1 else {}
        audit(
            actor=None,
            verb="sign-in failed",
            obj=user or Workspace.current(),
            **detail,
            because=because,
            browser=current_browser(),
            **more,
        )


def sign_in_blocked(*, request: HttpRequest, login: str) -> None:
    """Record, once an hour, that an account's sign-ins from an address or browser have to wait."""
    address = address_of(request)
    if not cache.add(_key("blocked", address, login), True, HOUR) or not _room(address, login):
        return
    user = _account(login)
    detail = {"user": user.get_username()} if user else {"account": "unknown"}
    audit(actor=None, verb="sign-in blocked", obj=user or Workspace.current(), **detail)


def sign_ins_forget() -> None:
    """Delete entries of sign-ins that are older than LACE_SIGN_IN_LOG_DAYS. The database allows no others."""
    if not memory.add("sign-ins-forget", True, LOOKED_EVERY.total_seconds()):
        return
    before = timezone.now() - timedelta(days=settings.LACE_SIGN_IN_LOG_DAYS)
    # NB: the model's own manager refuses to delete.
    entries: QuerySet[AuditEvent] = QuerySet(AuditEvent)
    old = entries.filter(verb__in=SIGN_IN_VERBS, at__lt=before).order_by("pk")
    while these := list(old.values_list("pk", flat=True)[:AT_ONCE]):
        entries.filter(pk__in=these).delete()


def _account(login: str) -> User | None:
    return User.objects.filter(Q(username__iexact=login) | Q(email__iexact=login)).first() if login else None


def _room(address: str, login: str) -> int:
    """Return how many more failed sign-ins may be listed this hour, this one included; 0 for none."""
    hour = int(timezone.now().timestamp()) // HOUR
    limits = {
        _key("address", address, hour): FROM_ADDRESS,
        _key("account", login, hour): FOR_ACCOUNT,
        _key("all", hour): ALTOGETHER,
    }
    listed: dict[str, int] = cache.get_many(limits)
    room = min(limit - listed.get(key, 0) for key, limit in limits.items())
    if room > 0:
        cache.set_many({key: listed.get(key, 0) + 1 for key in limits}, HOUR)
    return max(room, 0)


def _key(*parts: object) -> str:
    return f"sign-in:{sha256('|'.join(map(str, parts)).lower().encode()).hexdigest()}"
