"""From a stored verdict to the receiver of a webhook, with real workers, brokers and requests."""

from collections.abc import Iterator
from datetime import datetime
from json import loads

import numpy as np

from bench import Figure
from bench._chaos import state, wait_for
from bench._webhooks import away, waiting
from bench._workers import BROKERS, Workers, broker
from bench.chaos import launched, place
from evaluation.models.outbox import OutboxEvent, WebhookEndpoint
from evaluation.models.runs import Run
from lace_site import celery_app
from tests.factories.webhooks import Receiver, make_webhook, receiver

CHATS, LATENCY, SECONDS = 300, 0.2, 5.0
MINUTES, EVENTS, KILL_EVERY = 10, 20, 3


def figures() -> Iterator[Figure]:
    """With each broker: how long a verdict takes, and a receiver that is away while workers are killed."""
    celery_app.conf.update(broker_url="memory://", broker_transport_options={})
    for kind in BROKERS:
        with receiver() as kept:
            row = make_webhook(kept.address, kinds=["verdicts.stored"])
            yield from _latency(kind, kept)
            if kind == "valkey":
                yield from _away(kind, kept)
        OutboxEvent.objects.all().delete()
        WebhookEndpoint.objects.filter(pk=row.pk).delete()


def _latency(kind: str, kept: Receiver) -> Iterator[Figure]:
    with place(chats=CHATS, latency=LATENCY) as here, broker(kind, here.folder) as more:
        run = launched()
        with Workers(here.environment(more), log=here.folder / "workers.log"):
            wait_for(lambda: state(run) != Run.State.RUNNING, "the end of the run")
            wait_for(lambda: not waiting(), "the last event")
    events = [loads(body) for _, body in kept.seen]
    if {len(events), len(set(kept.ids))} != {CHATS}:
        raise RuntimeError(f"{len(events)} events of {CHATS} chats")
    stored = [datetime.fromisoformat(one["timestamp"]).timestamp() for one in events]
    seconds = np.array(kept.times) - np.array(stored)
    name = f"{CHATS} verdicts, stored to received, {kind}"
    yield Figure(f"{name}: p95", float(np.percentile(seconds, 95)), SECONDS, "s")
    yield Figure(f"{name}: slowest", float(seconds.max()), SECONDS, "s")


def _away(kind: str, kept: Receiver) -> Iterator[Figure]:
    OutboxEvent.objects.all().delete()
    kept.seen.clear()
    with place(chats=1, latency=LATENCY) as here, broker(kind, here.folder) as more:
        celery_app.conf.broker_url = more["CELERY_BROKER_URL"]
        workers = Workers(here.environment(more), log=here.folder / "workers.log", judges=0)
        try:
            found = away(workers, kept, minutes=MINUTES, events=EVENTS, kill_every=KILL_EVERY)
        finally:
            workers.kill()
            celery_app.conf.broker_url = "memory://"
    name = f"{found.events:,} events, receiver away {MINUTES} min, {found.kills} × kill -9"
    yield Figure(f"{name}: lost", found.lost, 0, "")
    yield Figure(f"{name}: ids with two bodies", found.altered, 0, "")
    yield Figure(f"{name}: events that came twice", found.repeated, found.events, "")
    yield Figure(f"{name}: requests while away", found.asked_while_away, EVENTS + 3 * MINUTES, "")
