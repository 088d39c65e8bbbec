"""Signed requests, retries; a receiver or a worker that dies: nothing lost, duplicates with the same id."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from common.models import InboxItem
from evaluation.models.outbox import Delivery, OutboxEvent, WebhookEndpoint
from evaluation.models.runs import WorkerLease
from evaluation.outbox import services
from evaluation.outbox.services import outbox_publish, outbox_publish_all
from evaluation.webhooks import worker
from evaluation.webhooks.core import MOST_ATTEMPTS, Result, signature
from evaluation.webhooks.services import event_replay, webhook_renew, webhook_switch
from evaluation.webhooks.worker import send_work, webhooks_sweep
from labeling.models.people import AuditEvent, Role
from lace_site.broker import Transport
from tests.factories.rows import make_user
from tests.factories.webhooks import SECRET, make_webhook, receiver

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def enqueued(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> list[int]:
    """The webhooks whose sender was enqueued, in place of the broker; loopback may be dialled."""
    settings.LACE_LOOPBACK_ONLY = True
    calls: list[int] = []

    def enqueue(name: str, rows: Any, pk: int) -> bool:
        rows.filter(pk=pk).update(rung_at=timezone.now())
        calls.append(pk)
        return True

    monkeypatch.setattr(services, "enqueue_row", enqueue)
    monkeypatch.setattr("evaluation.runs.worker.leased_rows.enqueue_row", enqueue)
    return calls


def publish(count: int = 1) -> list[str]:
    """Publish so many events; their ids."""
    outbox_publish_all(kind="verdicts.stored", payloads=[{"chat_id": f"c{n}"} for n in range(count)])
    return [str(pk) for pk in OutboxEvent.objects.values_list("pk", flat=True)]


def make_due() -> None:
    """Let the time of every pause pass."""
    now = timezone.now() - timedelta(seconds=1)
    WebhookEndpoint.objects.exclude(hold_until=None).update(hold_until=now)
    Delivery.objects.filter(state="waiting").update(next_at=now)
    webhooks_sweep()


def deliver(row: WebhookEndpoint, *, rounds: int = 30) -> None:
    """Work as sweep and worker do, with every pause passed, until nothing waits."""
    for _ in range(rounds):
        if not Delivery.objects.filter(endpoint=row, state="waiting").exists():
            return
        make_due()
        send_work(row.pk)


def refreshed(row: WebhookEndpoint) -> WebhookEndpoint:
    row.refresh_from_db()
    return row


def test_a_request_is_signed_over_id_time_and_body() -> None:
    with receiver() as kept:
        row = make_webhook(kept.address)
        (event_id,) = publish()
        send_work(row.pk)
    ((headers, body),) = kept.seen
    told = json.loads(body)
    assert (told["id"], told["type"], told["data"]) == (event_id, "verdicts.stored", {"chat_id": "c0"})
    assert headers["webhook-id"] == event_id
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    stamp = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == signature(SECRET, event_id=event_id, timestamp=stamp, body=body)
    one = Delivery.objects.get()
    assert (one.state, one.attempts, one.status, one.response) == ("delivered", 1, 200, "noted")
    assert one.latency_ms is not None and len(one.history) == 1
    assert (refreshed(row).state, row.tries, row.lease) == ("idle", 0, None)
    assert not WorkerLease.objects.exists()


def test_a_receiver_that_is_away_gets_everything_later_and_duplicates_have_the_same_id() -> None:
    def answer(count: int) -> int | None:
        return 503 if count < 22 else None if count < 25 else 200

    with receiver(answer) as kept:
        row = make_webhook(kept.address)
        ids = publish(20)
        send_work(row.pk)
        assert refreshed(row).failures and row.failing_since and row.hold_until
        deliver(row)
        assert set(kept.ids) == set(ids) and len(kept.ids) > len(ids)
        assert all(len(same) == 1 for same in kept.bodies.values())
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}
    row = WebhookEndpoint.objects.get()
    assert (row.failures, row.failing_since, row.hold_until) == (0, None, None)


def test_a_worker_that_dies_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies after the receiver accepted and before that is stored, three times."""

    class Killed(BaseException):
        pass

    def killed(*_: Any) -> bool:
        raise Killed

    real, working = worker._store, worker.SENDERS.work
    with receiver() as kept:
        row = make_webhook(kept.address)
        ids = publish(5)
        for _ in range(3):
            monkeypatch.setattr(worker, "_store", killed)
            manager = working(row.pk)
            taken, lease = manager.__enter__()
            assert taken is not None
            with pytest.raises(Killed):
                worker._send(taken, lease)
            # No exit of the block ran: the lease stays behind, of a process that is gone.
            WorkerLease.objects.filter(pk=lease.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
            webhooks_sweep()
            assert refreshed(row).state == "due"
        monkeypatch.setattr(worker, "_store", real)
        deliver(row)
        assert set(kept.ids) == set(ids) and len(kept.ids) == 4 * len(ids)
    assert Delivery.objects.filter(state="delivered").count() == len(ids)


def test_a_second_worker_sends_nothing_while_the_first_one_works() -> None:
    with receiver() as kept:
        row = make_webhook(kept.address)
        publish()
        with worker.SENDERS.work(row.pk) as (taken, _):
            assert taken is not None
            send_work(row.pk)
        assert not kept.seen


def test_what_is_published_while_a_worker_ends_wakes_the_next_one(
    monkeypatch: pytest.MonkeyPatch, enqueued: list[int]
) -> None:
    with receiver() as kept:
        row = make_webhook(kept.address)
        publish()
        assert enqueued == [row.pk]
        real, late = worker._due, [1]

        def due(webhook: WebhookEndpoint) -> list[Delivery]:
            found = real(webhook)
            if not found and late:  # it has seen that nothing is left; its state still says that it works
                late.clear()
                outbox_publish(kind="verdicts.stored", payload={"chat_id": "late"})
            return found

        monkeypatch.setattr(worker, "_due", due)
        send_work(row.pk)
        assert enqueued == [row.pk, row.pk]  # by the worker itself: no sweep was needed
        send_work(row.pk)
        assert len(kept.seen) == 2


def test_no_pause_of_the_way_to_a_webhook_is_longer_than_two_seconds() -> None:
    """Verdict to webhook within 5 s: enqueued at the commit; workers ask the broker every second."""
    assert (Transport.polling_interval or 0) <= 1


@pytest.mark.parametrize(("answered", "words"), [(302, "redirects are not followed"), (404, "")])
def test_an_answer_that_is_no_success_is_a_failed_attempt(answered: int, words: str) -> None:
    with receiver(lambda count: answered) as kept:
        kept.headers["Location"] = "http://127.0.0.1/elsewhere"
        row = make_webhook(kept.address)
        publish()
        send_work(row.pk)
        assert len(kept.seen) == 1
    one = Delivery.objects.get()
    assert (one.state, one.attempts, one.status, one.error) == ("waiting", 1, answered, words)
    assert timedelta(0) < one.next_at - timezone.now() <= timedelta(seconds=5)
    assert refreshed(row).failures == 0  # the receiver is there


def test_an_event_that_is_never_accepted_is_given_up_and_others_go_on() -> None:
    def answer(count: int) -> int | None:
        return 400 if json.loads(kept.seen[count][1])["data"]["chat_id"] == "c0" else 200

    with receiver(answer) as kept:
        row = make_webhook(kept.address)
        publish(3)
        deliver(row)
    assert sorted(Delivery.objects.values_list("state", flat=True)) == ["delivered", "delivered", "failed"]
    bad = Delivery.objects.get(state="failed")
    assert (bad.attempts, len(bad.history)) == (MOST_ATTEMPTS, MOST_ATTEMPTS)
    assert refreshed(row).active


def test_retry_after_holds_everything_back() -> None:
    with receiver(lambda count: 429) as kept:
        kept.headers["Retry-After"] = "120"
        row = make_webhook(kept.address)
        publish()
        send_work(row.pk)
    held = refreshed(row).hold_until
    assert held and timedelta(seconds=110) < held - timezone.now() <= timedelta(seconds=120)


def test_a_dead_receiver_is_switched_off_and_the_leads_are_told() -> None:
    lead, author = make_user("lead", Role.LEAD), make_user("author", Role.AUTHOR)
    with receiver(lambda count: 500) as kept:
        row = make_webhook(kept.address)
        publish()
        send_work(row.pk)
        assert refreshed(row).active
        WebhookEndpoint.objects.update(failing_since=timezone.now() - timedelta(days=3))
        make_due()
        send_work(row.pk)
        assert not refreshed(row).active and "3 days" in row.stopped_because
        assert {item.user for item in InboxItem.objects.filter(subject=f"webhook:{row.pk}")} == {lead}
        assert not InboxItem.objects.filter(user=author).exists()
        assert AuditEvent.objects.get(verb="webhook stopped").actor is None
        make_due()
        send_work(row.pk)
        assert len(kept.seen) == 2
        kept.answer = lambda count: 200
        webhook_switch(webhook=row, on=True, by=lead)
        send_work(row.pk)
    assert Delivery.objects.get().state == "delivered"


def test_an_address_that_is_gone_is_switched_off_at_once() -> None:
    with receiver(lambda count: 410) as kept:
        row = make_webhook(kept.address)
        publish()
        send_work(row.pk)
    assert not refreshed(row).active and "410" in row.stopped_because


def test_a_private_address_is_never_dialled(settings: Settings) -> None:
    settings.LACE_LOOPBACK_ONLY = False
    with receiver() as kept:
        row = make_webhook(kept.address)
        publish()
        send_work(row.pk)
        assert not kept.seen
    one = Delivery.objects.get()
    assert (one.status, one.state) == (None, "waiting") and "this machine itself" in one.error


def test_a_slow_answer_ends_with_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "REQUEST_SECONDS", 0.2)

    def answer(count: int) -> int:
        time.sleep(1)
        return 200

    with receiver(answer) as kept:
        row = make_webhook(kept.address)
        publish()
        send_work(row.pk)
    one = Delivery.objects.get()
    assert (one.status, one.error) == (None, "no answer within 0.2 seconds")


def test_both_secrets_sign_for_a_day_after_a_change() -> None:
    with receiver() as kept:
        row = make_webhook(kept.address)
        new = webhook_renew(webhook=row, by=None)
        assert "whsec_" not in repr(new) and new.secret not in refreshed(row).secret
        event_id = publish()[0]
        send_work(row.pk)
        headers, body = kept.seen[0]
        told: dict[str, Any] = {
            "event_id": event_id,
            "timestamp": int(headers["webhook-timestamp"]),
            "body": body,
        }
        both = [signature(secret, **told) for secret in (new.secret, SECRET)]
        assert headers["webhook-signature"] == " ".join(both)
        WebhookEndpoint.objects.update(old_secret_until=timezone.now() - timedelta(seconds=1))
        webhooks_sweep()
    assert refreshed(row).old_secret == ""


def test_a_secret_that_cannot_be_decrypted_stops_the_webhook(settings: Settings) -> None:
    row = make_webhook()
    publish()
    settings.LACE_ENDPOINT_KEYS = ["MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]
    send_work(row.pk)
    assert not refreshed(row).active and "new signing secret" in row.stopped_because


def test_a_replayed_event_has_its_old_id() -> None:
    with receiver() as kept:
        row = make_webhook(kept.address)
        (event_id,) = publish()
        send_work(row.pk)
        event_replay(webhook=row, event_id=OutboxEvent.objects.get().pk, by=None)
        send_work(row.pk)
        assert kept.ids == [event_id, event_id]
    assert Delivery.objects.count() == 1


def test_old_events_are_deleted_with_their_deliveries() -> None:
    make_webhook()
    publish(2)
    first = OutboxEvent.objects.all()[0]
    OutboxEvent.objects.filter(pk=first.pk).update(created_at=timezone.now() - timedelta(days=31))
    webhooks_sweep()
    assert OutboxEvent.objects.count() == Delivery.objects.count() == 1


def test_only_a_whole_round_without_answers_counts_as_a_receiver_that_is_away() -> None:
    row = make_webhook()
    now = timezone.now()
    worker._note(row, [Result(None, 1)] * 64, now)
    assert row.failures == 5 and row.hold_until is not None
    worker._note(row, [Result(503, 1)], now)
    assert row.failures == 6
    worker._note(row, [Result(503, 1), Result(400, 1)], now)
    assert (row.failures, row.failing_since) == (0, now)
