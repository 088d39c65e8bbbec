"""Sends what is due at a webhook for one time slice, and finds the webhooks that have something due."""

import asyncio
import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import httpx2
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from common.addresses import AddressPolicy
from common.inbox.services import Kind, inbox_add
from evaluation.gateway.addresses import guarded_session
from evaluation.gateway.client import NO_REPLY, no_reply
from evaluation.gateway.current import address_policy
from evaluation.gateway.keys import KeyUnreadable, Secret, decrypt
from evaluation.gateway.rows import Row, rows_update
from evaluation.models.outbox import Delivery, OutboxEvent, WebhookEndpoint
from evaluation.models.runs import WorkerLease
from evaluation.outbox.services import SEND, ready, senders_wake
from evaluation.runs.worker.leased_rows import LeasedRows
from evaluation.webhooks.core import (
    DEAD_AFTER,
    GONE,
    LATER,
    LONGEST_ERROR,
    LONGEST_RESPONSE,
    OPEN_AFTER,
    Result,
    event_body,
    history_with,
    hold_after,
    pause_after,
    retry_after_read,
    signed_headers,
)
from labeling.models.people import User
from labeling.people.services.audit import audit

log = logging.getLogger(__name__)

# NB: with the last request these stay well below a lease, so a slice needs no heartbeat.
SLICE_SECONDS, REQUEST_SECONDS = 20.0, 10.0
AT_ONCE, ROUND = 8, 64  # requests at a time, deliveries read at a time
KEPT = timedelta(days=30)
DELETED_A_SWEEP = 5000
UNREADABLE = "the server's encryption key has changed: make a new signing secret"
BACKEND = "django.contrib.auth.backends.ModelBackend"
_State = WebhookEndpoint.State
_UPDATED = (
    *("state", "attempts", "next_at", "sent_at", "status", "latency_ms"),
    *("response", "error", "history"),
)


class _Senders(LeasedRows[WebhookEndpoint]):
    """One worker at a time sends to a webhook: deliveries need no lease of their own.

    Those that a dead worker had on the way are still waiting and are sent again, with the same id.
    """

    model = WebhookEndpoint
    task = SEND
    open_state = _State.DUE
    working_state = _State.SENDING
    reopen = {"rung_at": None}

    def fail(self, row: WebhookEndpoint) -> None:
        """Never give up for the workers' faults: the next sweep enqueues it."""
        row.tries, row.rung_at = 0, None
        row.save(update_fields=["tries", "rung_at"])
        log.error("the workers that sent to webhook %s died several times", row.pk)

    def log_death(self, row: WebhookEndpoint) -> None:
        log.warning("webhook %s: its worker died, another one goes on", row.pk)


SENDERS = _Senders()


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send and how to sign."""

    address: str
    keys: tuple[Secret, ...]
    policy: AddressPolicy


def send_work(webhook_id: int) -> None:
    """Send what is due at a webhook for one time slice; do nothing if another worker does."""
    with SENDERS.work(webhook_id) as (row, lease):
        if row is None:
            return
        try:
            _send(row, lease)
        except KeyUnreadable:
            _stop(row, lease, UNREADABLE)
        SENDERS.owned(webhook_id, lease).update(state=_State.IDLE, lease=None, tries=0)
    # NB: after the state: who published meanwhile relied on this worker to look again.
    if due(ready(WebhookEndpoint.objects.filter(pk=webhook_id))).exists():
        senders_wake([webhook_id])


def webhooks_sweep() -> None:
    """Enqueue the webhooks with something due, such as a retry, and delete what is older than KEPT."""
    idle = ready(WebhookEndpoint.objects.filter(state=_State.IDLE))
    if ids := list(due(idle).values_list("pk", flat=True)):
        WebhookEndpoint.objects.filter(pk__in=ids, state=_State.IDLE).update(state=_State.DUE, rung_at=None)
    SENDERS.sweep()
    _forget()


def due(rows: QuerySet[WebhookEndpoint]) -> QuerySet[WebhookEndpoint]:
    """Return those of these webhooks that have a delivery to send now."""
    return rows.filter(Exists(_waiting(timezone.now()).filter(endpoint=OuterRef("pk"))))


def _waiting(now: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(state=Delivery.State.WAITING, next_at__lte=now)


def _forget() -> None:
    before = timezone.now() - KEPT
    old = list(
        OutboxEvent.objects.filter(created_at__lt=before).values_list("pk", flat=True)[:DELETED_A_SWEEP]
    )
    if old:
        OutboxEvent.objects.filter(pk__in=old).delete()
    ended = WebhookEndpoint.objects.filter(old_secret_until__lt=timezone.now())
    if ended.exists():
        ended.update(old_secret="", old_secret_until=None)


# ---------- one time slice ----------


def _send(row: WebhookEndpoint, lease: WorkerLease) -> None:
    """Rounds of reading, sending and storing, until the last due one or the end of the slice."""
    target, end = target_of(row), time.monotonic() + SLICE_SECONDS
    with asyncio.Runner() as runner:
        session = runner.run(_open(target.policy))
        try:
            while time.monotonic() < end and (batch := _due(row)):
                results = runner.run(_send_all(session, target, batch))
                if not _store(row, lease, batch, results):
                    return
        finally:
            runner.run(session.close())


def target_of(row: WebhookEndpoint) -> Target:
    """Return where to send. Raises KeyUnreadable."""
    stored = [row.secret]
    if row.old_secret and row.old_secret_until and row.old_secret_until > timezone.now():
        stored.append(row.old_secret)
    keys = tuple(decrypt(one, name=f"the webhook {row.name}") for one in stored)
    return Target(row.address, keys, address_policy())


def _due(row: WebhookEndpoint) -> list[Delivery]:
    """Return deliveries to send now; a single one to a receiver that left several without an answer."""
    if not row.active or (row.hold_until is not None and row.hold_until > timezone.now()):
        return []
    most = 1 if row.failures >= OPEN_AFTER else ROUND
    waiting = _waiting(timezone.now()).filter(endpoint=row).select_related("event")
    return list(waiting.order_by("next_at", "id")[:most])


async def _open(policy: AddressPolicy) -> aiohttp.ClientSession:
    return guarded_session(policy, limit=AT_ONCE, ssl=httpx2.create_ssl_context(trust_env=False))


async def _send_all(
    session: aiohttp.ClientSession, target: Target, batch: Sequence[Delivery]
) -> list[Result]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(delivery: Delivery) -> Result:
        async with slots:
            return await _request(session, target, delivery.event)

    return await asyncio.gather(*map(one, batch))


async def _request(session: aiohttp.ClientSession, target: Target, event: OutboxEvent) -> Result:
    """Send one request; every fault of the network is a result."""
    name, timestamp, started = str(event.pk), int(time.time()), time.perf_counter()
    body = event_body(event_id=name, kind=event.kind, at=event.created_at, payload=event.payload)
    headers = signed_headers(target.keys, event_id=name, timestamp=timestamp, body=body)
    try:
        async with (
            asyncio.timeout(REQUEST_SECONDS),
            session.post(
                target.address, data=body, headers=headers, allow_redirects=False, auto_decompress=False
            ) as reply,
        ):
            excerpt = await _excerpt(reply)
    except (*NO_REPLY, ValueError) as error:  # ValueError: an answer that is no HTTP
        return Result(None, _ms(started), error=no_reply(error, REQUEST_SECONDS).error[:LONGEST_ERROR])
    status, wait = reply.status, retry_after_read(reply.headers.get("Retry-After", ""))
    words = "redirects are not followed" if 300 <= status < 400 else ""
    later = wait if status >= 500 or status in LATER else None
    return Result(status, _ms(started), excerpt, words, later)


async def _excerpt(reply: aiohttp.ClientResponse) -> str:
    """Return the beginning of an answer; the rest is not read."""
    read = b""
    while len(read) < LONGEST_RESPONSE and (chunk := await reply.content.read(LONGEST_RESPONSE - len(read))):
        read += chunk
    return read.decode(errors="replace").replace("\0", "\ufffd")


def _ms(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


# ---------- what became of it ----------


@transaction.atomic
def _store(
    row: WebhookEndpoint, lease: WorkerLease, batch: Sequence[Delivery], results: Sequence[Result]
) -> bool:
    """Store the results of a round; False, with nothing stored, where another worker has the webhook."""
    owned = SENDERS.owned(row.pk, lease).select_for_update().first()
    if owned is None:
        log.warning("webhook %s: another worker has it now", row.pk)
        return False
    now = timezone.now()
    rows = [_delivery_row(one, result, now) for one, result in zip(batch, results, strict=True)]
    rows_update(Delivery, _UPDATED, rows)
    _note(owned, results, now)
    fields = ("failures", "failing_since", "hold_until", "delivered_at")
    SENDERS.owned(row.pk, lease).update(**{name: getattr(owned, name) for name in fields})
    row.failures, row.hold_until, row.active = owned.failures, owned.hold_until, owned.active
    if why := _dead(owned, results, now):
        _stop(row, lease, why)
        return False
    return True


def _delivery_row(one: Delivery, result: Result, now: datetime) -> Row:
    attempts, state, next_at = one.attempts + 1, Delivery.State.DELIVERED, now
    if not result.accepted:
        pause = pause_after(attempts, chance=_chance())
        state = Delivery.State.FAILED if pause is None else Delivery.State.WAITING
        next_at = now + (pause or timedelta())
    latest = (now, result.status, result.ms, result.response, result.error)
    return (state.value, attempts, next_at, *latest, history_with(one.history, result, at=now), one.pk)


def _note(row: WebhookEndpoint, results: Sequence[Result], now: datetime) -> None:
    """Note how the receiver is: one accepted event makes it well, and retries that wait for it due."""
    if any(result.accepted for result in results):
        if row.failures >= OPEN_AFTER:
            _retry_now(row, now)
        row.failing_since = None
        row.delivered_at = now
    else:
        row.failing_since = row.failing_since or now
    unwell = [result for result in results if result.unwell]
    if len(unwell) < len(results):
        row.failures = 0
    elif row.failures < OPEN_AFTER:  # requests of one round failed for the same reason
        row.failures = min(row.failures + len(unwell), OPEN_AFTER)
    else:
        row.failures += 1
    waits = [result.retry_after for result in unwell if result.retry_after is not None]
    hold = hold_after(row.failures, retry_after=max(waits, default=None), chance=_chance())
    row.hold_until = now + hold if hold else None


def _retry_now(row: WebhookEndpoint, now: datetime) -> None:
    """Do not let events wait for hours that failed while the receiver was away."""
    away = Q(status=None) | Q(status__gte=500) | Q(status__in=LATER)
    waiting = Delivery.objects.filter(away, endpoint=row, state=Delivery.State.WAITING, next_at__gt=now)
    waiting.update(next_at=now)


def _dead(row: WebhookEndpoint, results: Sequence[Result], now: datetime) -> str:
    """Return why the webhook must be switched off; "" if it need not."""
    if any(result.status == GONE for result in results):
        return "the receiver answered that it is gone (410)"
    if row.failing_since is not None and now - row.failing_since >= DEAD_AFTER:
        return f"it accepted nothing for {DEAD_AFTER.days} days"
    return ""


@transaction.atomic
def _stop(row: WebhookEndpoint, lease: WorkerLease, why: str) -> None:
    """Switch a webhook off and tell the leads."""
    stopped: dict[str, Any] = {"active": False, "stopped_at": timezone.now(), "stopped_because": why[:200]}
    if not SENDERS.owned(row.pk, lease).update(**stopped):
        return
    row.active = False
    log.warning("webhook %s is switched off: %s", row.pk, why)
    audit(actor=None, verb="webhook stopped", obj=row, name=row.name, because=why)
    leads = User.objects.with_perm("labeling.manage_labeling", include_superusers=False, backend=BACKEND)
    inbox_add(users=leads, kind=Kind.STOPPED, subject=f"webhook:{row.pk}")


def _chance() -> float:
    return secrets.randbelow(1001) / 1000
