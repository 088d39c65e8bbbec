"""Publishes events for webhooks, in the transaction of what happened, and wakes the senders after it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from common.queue import enqueue_row
from evaluation.models.outbox import Delivery, EventKind, OutboxEvent, WebhookEndpoint
from evaluation.models.runs import EVALUATIONS, Run
from labeling.models.chats import Chat

SEND = "evaluation.tasks.send_webhooks"
ROWS_AT_ONCE = 500
# Of a chat: what an experiment platform joins on.
EXPERIMENT = ("experiment", "variant", "unit_id")


@dataclass(frozen=True, slots=True)
class StoredVerdicts:
    """Verdicts of one chat, stored together: {"criterion", "value", "state", "p_true"} each."""

    run_id: int
    chat_id: int
    verdicts: tuple[Mapping[str, Any], ...]


def stored_verdict(criterion: str, *, state: str, value: bool | None, p_true: float | None) -> dict[str, Any]:
    """Return a verdict as events tell it; `value` null with the state read means not applicable."""
    return {"criterion": criterion, "value": value, "state": str(state), "p_true": p_true}


def outbox_publish(*, kind: str, payload: Mapping[str, Any]) -> None:
    """Publish one event, in the transaction of what it tells. `payload` is plain JSON without chat text."""
    outbox_publish_all(kind=kind, payloads=[payload])


def outbox_publish_all(*, kind: str, payloads: Sequence[Mapping[str, Any]]) -> None:
    """Publish several events of a kind, with a statement for each few hundred rows.

    The table stays empty while no webhook subscribes to the kind. A webhook that is switched off keeps the
    events coming, so that they can be replayed; it gets no deliveries.
    """
    if subscribed := _subscribed(kind):
        _publish(kind, payloads, subscribed)


def verdicts_publish(stored: Iterable[StoredVerdicts]) -> None:
    """Publish verdicts in the transaction that stores them: one event a chat, in a handful of queries.

    Webhooks get verdicts of evaluations only: neither an author's tries nor those of a regression test.
    """
    subscribed = _subscribed(EventKind.VERDICTS)
    if not subscribed:
        return
    told = [one for one in stored if one.verdicts]
    judged = Run.objects.filter(pk__in={one.run_id for one in told}, purpose__in=EVALUATIONS)
    runs = {run.pk: _judge(run) for run in judged.select_related("judge")}
    told = [one for one in told if one.run_id in runs]
    if told:
        chats = _chats({one.chat_id for one in told})
        _publish(
            EventKind.VERDICTS,
            [runs[one.run_id] | chats[one.chat_id] | {"verdicts": list(one.verdicts)} for one in told],
            subscribed,
        )


def run_publish(run: Run) -> None:
    """Publish that a run ended, in the transaction that ends it. Webhooks hear of evaluations only."""
    if run.purpose in EVALUATIONS and (subscribed := _subscribed(EventKind.RUN)):
        chat_set = run.chat_set.name if run.chat_set else None
        state = {"set": chat_set, "state": str(run.state), "verdicts": run.verdict_counts}
        _publish(EventKind.RUN, [_judge(run) | state], subscribed)


def wake_after_commit(ids: Collection[int]) -> None:
    """Wake these senders once the transaction is committed.

    NB: robust, because the caller's work is committed by then and must not be repeated. A `partial` has no
    name, which Django needs to log that one failed.
    """
    transaction.on_commit(lambda: senders_wake(ids), robust=True)


def senders_wake(ids: Collection[int]) -> None:
    """Enqueue the sender of each of these webhooks, unless it is enqueued or at work: then it looks again.

    A webhook that must wait after failures is left to the sweep.
    """
    idle = ready(WebhookEndpoint.objects.filter(pk__in=ids, state=WebhookEndpoint.State.IDLE))
    for pk in list(idle.values_list("pk", flat=True)):
        if idle.filter(pk=pk).update(state=WebhookEndpoint.State.DUE):
            enqueue_row(SEND, WebhookEndpoint.objects.all(), pk)


def ready(rows: QuerySet[WebhookEndpoint]) -> QuerySet[WebhookEndpoint]:
    """Return those of these webhooks that may be sent to now."""
    return rows.filter(Q(hold_until=None) | Q(hold_until__lte=timezone.now()), active=True)


@transaction.atomic
def _publish(
    kind: str, payloads: Sequence[Mapping[str, Any]], subscribed: Sequence[tuple[int, bool]]
) -> None:
    now = timezone.now()
    events = [OutboxEvent(kind=EventKind(kind), payload=dict(one), created_at=now) for one in payloads]
    OutboxEvent.objects.bulk_create(events, batch_size=ROWS_AT_ONCE)
    to = [pk for pk, active in subscribed if active]
    deliveries = [Delivery(event=event, endpoint_id=pk, next_at=now) for event in events for pk in to]
    Delivery.objects.bulk_create(deliveries, batch_size=ROWS_AT_ONCE)
    wake_after_commit(to)


def _subscribed(kind: str) -> list[tuple[int, bool]]:
    """Return the webhooks that subscribe to a kind, and whether each is switched on; one query."""
    rows = WebhookEndpoint.objects.order_by("pk").values_list("pk", "active", "kinds")
    return [(pk, active) for pk, active, kinds in rows if kind in kinds]


def _judge(run: Run) -> dict[str, Any]:
    return {"run": run.pk, "judge": {"name": run.judge.name, "fingerprint": run.judge.fingerprint}}


def _chats(ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return what events tell of chats: names alone, never their text."""
    rows = Chat.objects.filter(pk__in=ids).values_list("pk", "external_id", "topic__key", *EXPERIMENT)
    return {
        pk: {"chat_id": name, "topic": topic}
        | {key: value or None for key, value in zip(EXPERIMENT, assigned, strict=True)}
        for pk, name, topic, *assigned in rows
    }
