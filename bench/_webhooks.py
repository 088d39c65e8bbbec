"""A receiver that is away for minutes while real workers are killed: what it gets in the end."""

import threading
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F

from bench._chaos import wait_for
from bench._workers import Workers
from evaluation.models.outbox import Delivery, WebhookEndpoint
from evaluation.outbox.services import outbox_publish_all
from tests.factories.webhooks import Receiver

PATIENCE = 60.0
STALLED = 20.0  # longer than a sender waits for an answer


@dataclass(frozen=True, slots=True)
class Away:
    """Events and requests; `lost` never arrived or are not stored as delivered, `altered` have two bodies."""

    events: int
    requests: int
    asked_while_away: int
    lost: int
    altered: int
    repeated: int
    kills: int


def away(workers: Workers, kept: Receiver, *, minutes: int, events: int, kill_every: int) -> Away:
    """Let a receiver be away for so many minutes of a shifted clock, and kill -9 the workers meanwhile.

    Events are published in each minute. Once it is back, workers die again, after it accepted events and
    before that is stored.
    """
    workers.start()
    publish(events, "before")
    wait_for(lambda: not waiting(), "events to arrive", seconds=PATIENCE)
    kept.answer = lambda number: None
    before, kills = len(kept.seen), 0
    for minute in range(1, minutes + 1):
        publish(events, f"minute {minute}")
        seen = len(kept.seen)
        shift(timedelta(minutes=1))
        wait_for(lambda: len(kept.seen) > seen, f"a request in minute {minute}", seconds=PATIENCE)  # noqa: B023
        if minute % kill_every == 0:
            workers.kill()
            workers.start()
            kills += 1
        wait_for(_stored, f"the results of minute {minute}", seconds=PATIENCE)
    asked = len(kept.seen) - before
    kills += _die_before_storing(workers, kept)
    wait_for(lambda: not waiting(), "every event", seconds=PATIENCE)
    bodies = kept.bodies
    arrived = {str(event) for event in _delivered()} & set(bodies)
    return Away(
        events=Delivery.objects.count(),
        requests=len(kept.seen),
        asked_while_away=asked,
        lost=Delivery.objects.count() - len(arrived),
        altered=sum(len(same) > 1 for same in bodies.values()),
        repeated=len(kept.ids) - len(set(kept.ids)),
        kills=kills,
    )


def _die_before_storing(workers: Workers, kept: Receiver) -> int:
    """Let the receiver accept some events and stall at others, so that a round is not stored; kill, go on."""
    first, killed = len(kept.seen), threading.Event()

    def accepts_some(number: int) -> int | None:
        if number > first + 3:
            killed.wait(STALLED)
            return None
        return 200

    kept.answer = accepts_some
    shift(timedelta(minutes=1))
    wait_for(lambda: len(kept.seen) > first + 4, "a round under way", seconds=PATIENCE)
    workers.kill()
    killed.set()
    kept.answer = lambda number: 200
    workers.start()
    shift(timedelta(minutes=1))
    return 1


def _stored() -> bool:
    """Whether no round of requests is under way."""
    return not WebhookEndpoint.objects.exclude(state=WebhookEndpoint.State.IDLE).exists()


def publish(events: int, when: str) -> None:
    """Publish so many events."""
    payloads = [{"chat_id": f"{when}, chat {number}"} for number in range(events)]
    outbox_publish_all(kind="verdicts.stored", payloads=payloads)


def waiting() -> bool:
    """Whether an event waits."""
    return Delivery.objects.filter(state=Delivery.State.WAITING).exists()


def shift(by: timedelta) -> None:
    """Let this much time pass for whatever waits for a time. A worker at work is as far as it was."""
    WebhookEndpoint.objects.update(
        hold_until=F("hold_until") - by, failing_since=F("failing_since") - by, rung_at=F("rung_at") - by
    )
    Delivery.objects.filter(state=Delivery.State.WAITING).update(next_at=F("next_at") - by)


def _delivered() -> list[object]:
    return list(Delivery.objects.filter(state=Delivery.State.DELIVERED).values_list("event", flat=True))
