"""Adds, changes and removes webhooks, tests them, and sends events again. A secret is shown once."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from common.problems import FieldProblem, InputProblem
from common.sql import insert_select
from evaluation.gateway.current import address_policy
from evaluation.gateway.endpoints import entered_url
from evaluation.gateway.keys import Secret, encrypt, key_hint
from evaluation.models.outbox import SUBSCRIBED, Delivery, EventKind, OutboxEvent, WebhookEndpoint
from evaluation.outbox.services import wake_after_commit
from evaluation.webhooks.core import secret_new
from evaluation.webhooks.worker import KEPT
from labeling.models.people import User
from labeling.people.services.audit import audit

LONGEST_NAME, LONGEST_ADDRESS = 80, 500
MOST_WEBHOOKS = 20
MOST_REPLAYED = 100_000
# A receiver has this long to learn a new secret: until then the old one signs, too.
OLD_SECRET_SIGNS = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A webhook with its signing secret, for the one answer that shows it."""

    webhook: WebhookEndpoint
    secret: Secret = field(repr=False)


@dataclass(frozen=True, slots=True)
class WebhookChoice:
    """The choice of a lead; `kinds` are values of EventKind."""

    name: str
    address: str
    kinds: Sequence[str]


@transaction.atomic
def webhook_add(*, choice: WebhookChoice, by: User | None) -> NewSecret:
    """Add a webhook. Raises FieldProblem for a used name, an address that is not allowed, or no kind."""
    if WebhookEndpoint.objects.count() >= MOST_WEBHOOKS:
        raise FieldProblem("name", f"there are {MOST_WEBHOOKS} webhooks already: remove one first")
    row = WebhookEndpoint(created_by=by)
    _fill(row, choice, by)
    secret = _renew(row)
    row.save()
    detail = {"name": row.name, "address": row.address, "kinds": row.kinds}
    audit(actor=by, verb="webhook added", obj=row, **detail)
    return NewSecret(row, secret)


@transaction.atomic
def webhook_change(*, webhook: WebhookEndpoint, choice: WebhookChoice, by: User | None) -> WebhookEndpoint:
    """Change a webhook. Events that wait go to a new address too. Raises FieldProblem as `webhook_add`."""
    row = _locked(webhook)
    before = {name: getattr(row, name) for name in ("name", "address", "kinds")}
    _fill(row, choice, by)
    row.save(update_fields=[*before, "updated_by", "updated_at"])
    changed = sorted(name for name, value in before.items() if getattr(row, name) != value)
    audit(actor=by, verb="webhook changed", obj=row, name=row.name, address=row.address, changed=changed)
    return row


@transaction.atomic
def webhook_switch(*, webhook: WebhookEndpoint, on: bool, by: User | None) -> None:
    """Switch a webhook on or off. Events that wait are sent once it is on again."""
    row = _locked(webhook)
    if row.active == on:
        return
    row.active, row.updated_by = on, by
    # What stopped it is in the audit log; a new start begins without its failures.
    row.stopped_at = row.failing_since = row.hold_until = None
    row.stopped_because, row.failures = "", 0
    names = ("active", "stopped_at", "stopped_because", "failing_since", "hold_until", "failures")
    row.save(update_fields=[*names, "updated_by", "updated_at"])
    audit(actor=by, verb=f"webhook {'enabled' if on else 'disabled'}", obj=row, name=row.name)
    if on:
        row.deliveries.filter(state=Delivery.State.WAITING).update(next_at=timezone.now())
        wake_after_commit([row.pk])


@transaction.atomic
def webhook_renew(*, webhook: WebhookEndpoint, by: User | None) -> NewSecret:
    """Make a new signing secret. For OLD_SECRET_SIGNS both sign, so that the receiver can change over."""
    row = _locked(webhook)
    row.old_secret, row.old_secret_until = row.secret, timezone.now() + OLD_SECRET_SIGNS
    secret, row.updated_by = _renew(row), by
    names = ("secret", "secret_hint", "old_secret", "old_secret_until")
    row.save(update_fields=[*names, "updated_by", "updated_at"])
    audit(actor=by, verb="secret renewed", obj=row, name=row.name)
    return NewSecret(row, secret)


@transaction.atomic
def webhook_remove(*, webhook: WebhookEndpoint, by: User | None) -> None:
    """Remove a webhook with its secret and its deliveries. Raises InputProblem while it is on.

    NB: while it is on, a transaction that stores verdicts may be writing a delivery for it.
    """
    row = _locked(webhook)
    if row.active:
        raise InputProblem("switch the webhook off before you remove it")
    audit(actor=by, verb="webhook removed", obj=row, name=row.name, address=row.address)
    row.delete()


@transaction.atomic
def webhook_test(*, webhook: WebhookEndpoint, by: User | None) -> Delivery:
    """Send a test event to a webhook, whatever it subscribes to. Raises InputProblem while it is off."""
    _refuse_off(webhook)
    payload = {"webhook": webhook.name, "sent_by": by.get_username() if by else None}
    event = OutboxEvent.objects.create(kind=EventKind.TEST, payload=payload)
    delivery = Delivery.objects.create(event=event, endpoint=webhook, next_at=timezone.now())
    # The person waits for the answer: do not wait for a pause after earlier failures.
    WebhookEndpoint.objects.filter(pk=webhook.pk).update(hold_until=None)
    wake_after_commit([webhook.pk])
    return delivery


@transaction.atomic
def event_replay(*, webhook: WebhookEndpoint, event_id: uuid.UUID, by: User | None) -> Delivery:
    """Send one event again, with the same id. Raises InputProblem while the webhook is off.

    Raises FieldProblem where there is no such event that is for this webhook.
    """
    _refuse_off(webhook)
    event = OutboxEvent.objects.filter(pk=event_id).first()
    row = Delivery.objects.filter(event_id=event_id, endpoint=webhook).first()
    if event is None or (row is None and event.kind not in webhook.kinds):
        raise FieldProblem("event", "there is no such event for this webhook; events are kept for 30 days")
    row = row or Delivery(event=event, endpoint=webhook)
    row.state, row.attempts, row.next_at = Delivery.State.WAITING, 0, timezone.now()
    row.save()
    audit(actor=by, verb="event replayed", obj=webhook, name=webhook.name, event=str(event_id))
    wake_after_commit([webhook.pk])
    return row


@transaction.atomic
def period_replay(*, webhook: WebhookEndpoint, since: datetime, until: datetime, by: User | None) -> int:
    """Send every event of a period again that the webhook subscribes to; return their number.

    Raises InputProblem while the webhook is off; FieldProblem for a period that is empty or too large.
    """
    _refuse_off(webhook)
    if since >= until:
        raise FieldProblem("until", "must be after the start")
    events = OutboxEvent.objects.filter(
        created_at__gte=since, created_at__lt=until, kind__in=list(webhook.kinds)
    )
    count = events.count()
    if not count:
        raise FieldProblem("since", f"no event of this period is kept; events are kept for {KEPT.days} days")
    if count > MOST_REPLAYED:
        raise FieldProblem("until", f"the period has {count:,} events: replay at most {MOST_REPLAYED:,}")
    now = timezone.now()
    again = {"state": Delivery.State.WAITING, "attempts": 0, "next_at": now}
    earlier = Delivery.objects.filter(endpoint=webhook, event__in=events.values("pk"))
    earlier.update(**again)
    known = Delivery.objects.filter(endpoint=webhook, event=OuterRef("pk"))
    missing = events.filter(~Exists(known)).values_list("pk")
    rest = {"response": "", "error": "", "history": []}
    same: dict[str, Any] = {"endpoint": webhook.pk, **again, **rest}
    insert_select(Delivery, ["event"], missing, constants=same, ignore_conflicts=True)
    period = {"since": since.isoformat(), "until": until.isoformat(), "events": count}
    audit(actor=by, verb="events replayed", obj=webhook, name=webhook.name, **period)
    wake_after_commit([webhook.pk])
    return count


def _fill(row: WebhookEndpoint, choice: WebhookChoice, by: User | None) -> None:
    name = choice.name.strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise FieldProblem("name", f"must have 1 to {LONGEST_NAME} characters")
    if WebhookEndpoint.objects.exclude(pk=row.pk).filter(name=name).exists():
        raise FieldProblem("name", "another webhook has this name")
    if unknown := [kind for kind in choice.kinds if kind not in SUBSCRIBED]:
        raise FieldProblem(
            "kinds", f"{unknown[0][:40]} is no kind of event: known are {', '.join(SUBSCRIBED)}"
        )
    if not choice.kinds:
        raise FieldProblem("kinds", "choose at least one kind of event")
    row.name, row.updated_by = name, by
    row.address = entered_url(choice.address, guard=address_policy(), longest=LONGEST_ADDRESS)
    row.kinds = [str(kind) for kind in SUBSCRIBED if kind in choice.kinds]


def _renew(row: WebhookEndpoint) -> Secret:
    secret = Secret(secret_new())
    row.secret, row.secret_hint = encrypt(secret), key_hint(secret.rstrip("="))
    return secret


def _locked(webhook: WebhookEndpoint) -> WebhookEndpoint:
    return WebhookEndpoint.objects.select_for_update().get(pk=webhook.pk)


def _refuse_off(webhook: WebhookEndpoint) -> None:
    if not webhook.active:
        raise InputProblem("the webhook is switched off: switch it on first")
