"""Events are written in the transaction of their verdicts, and wake the sender when it is committed."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from evaluation.models.outbox import Delivery, OutboxEvent, WebhookEndpoint
from evaluation.models.runs import Run, Verdict
from evaluation.outbox import services
from evaluation.outbox.services import StoredVerdicts, outbox_publish, stored_verdict, verdicts_publish
from labeling.models.chats import Chat
from tests.factories.runs import always, answering, command, evaluate, workspace
from tests.factories.webhooks import make_webhook

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The webhooks whose sender was enqueued, in place of the broker."""
    calls: list[int] = []

    def enqueue(name: str, rows: Any, pk: int) -> bool:
        calls.append(pk)
        return True

    monkeypatch.setattr(services, "enqueue_row", enqueue)
    return calls


def judged(settings: Settings) -> Run:
    with answering(settings, always(True)):
        assert evaluate("--set", "calibration", "--engine", "direct").code == 0
    return Run.objects.get()


def test_a_run_publishes_one_event_a_chat_and_its_end(settings: Settings, enqueued: list[int]) -> None:
    workspace("polite", "kind", chats=3)
    Chat.objects.filter(external_id="c1").update(experiment="e", variant="b", unit_id="customer-7")
    row = make_webhook()
    run = judged(settings)
    told = OutboxEvent.objects.filter(kind="verdicts.stored")
    by_chat: dict[str, list[Any]] = {}
    for event in told:
        assert event.payload["run"] == run.pk
        assert event.payload["judge"]["fingerprint"] == run.judge.fingerprint
        assert "Where is my order" not in str(event.payload)
        told_of = tuple(event.payload[name] for name in ("experiment", "variant", "unit_id"))
        in_experiment = event.payload["chat_id"] == "c1"
        assert told_of == (("e", "b", "customer-7") if in_experiment else (None, None, None))
        by_chat.setdefault(event.payload["chat_id"], []).extend(event.payload["verdicts"])
    assert set(by_chat) == {"c0", "c1", "c2"}
    assert {one["criterion"] for one in by_chat["c0"]} == {"polite", "kind"}
    assert all(one["value"] is True and one["state"] == "read" for one in by_chat["c0"])
    assert sum(map(len, by_chat.values())) == Verdict.objects.count()
    (ended,) = OutboxEvent.objects.filter(kind="run.finished")
    assert (ended.payload["state"], ended.payload["verdicts"]["all"]) == ("done", 6)
    assert Delivery.objects.filter(endpoint=row, state="waiting").count() == OutboxEvent.objects.count()
    # Woken once: the sender that is enqueued finds what comes later by itself.
    assert enqueued == [row.pk]


def test_without_a_webhook_nothing_is_written(settings: Settings) -> None:
    workspace("polite")
    make_webhook(kinds=["run.finished"])
    judged(settings)
    assert set(OutboxEvent.objects.values_list("kind", flat=True)) == {"run.finished"}


def test_events_of_a_switched_off_webhook_are_kept_without_deliveries() -> None:
    make_webhook(active=False)
    outbox_publish(kind="verdicts.stored", payload={})
    assert OutboxEvent.objects.count() == 1 and not Delivery.objects.exists()


def test_what_is_rolled_back_was_never_published(enqueued: list[int]) -> None:
    make_webhook()
    with transaction.atomic():
        outbox_publish(kind="verdicts.stored", payload={})
        transaction.set_rollback(True)
    assert not OutboxEvent.objects.exists() and not enqueued


def test_the_sender_is_woken_after_the_commit_and_a_broken_broker_does_not_undo_it(
    monkeypatch: pytest.MonkeyPatch, enqueued: list[int]
) -> None:
    row = make_webhook()
    with transaction.atomic():
        outbox_publish(kind="verdicts.stored", payload={})
        assert not enqueued
    assert enqueued == [row.pk]
    WebhookEndpoint.objects.update(state="idle")

    def broken(*_: Any) -> bool:
        raise RuntimeError("no broker")

    monkeypatch.setattr(services, "enqueue_row", broken)
    outbox_publish(kind="verdicts.stored", payload={})
    assert OutboxEvent.objects.count() == 2


def test_imported_verdicts_are_published_and_an_editors_tries_are_not(tmp_path: Path) -> None:
    workspace("polite", chats=2)
    make_webhook()
    lines = [f'{{"chat_id": "c{n}", "criterion": "polite", "judge": "out", "value": true}}' for n in (0, 1)]
    (tmp_path / "v.jsonl").write_text("\n".join(lines))
    assert command("import_verdicts", str(tmp_path / "v.jsonl"), "--set", "calibration").code == 0
    assert OutboxEvent.objects.filter(kind="verdicts.stored").count() == 2
    assert OutboxEvent.objects.filter(kind="run.finished").count() == 1
    run = Run.objects.get()
    Run.objects.update(purpose="try")
    chat = Verdict.objects.values_list("chat", flat=True)[0]
    one = stored_verdict("polite", state="read", value=True, p_true=None)
    verdicts_publish([StoredVerdicts(run.pk, chat, (one,))])
    assert OutboxEvent.objects.count() == 3


def test_the_number_of_queries_grows_with_neither_chats_nor_webhooks(tmp_path: Path) -> None:
    workspace("polite", chats=10)
    lines = [f'{{"chat_id": "c{n}", "criterion": "polite", "judge": "out", "value": true}}' for n in (0,)]
    (tmp_path / "v.jsonl").write_text("\n".join(lines))
    command("import_verdicts", str(tmp_path / "v.jsonl"), "--set", "calibration")
    run, chats = Run.objects.get(), list(Run.objects.get().run_chats.values_list("chat", flat=True))
    one = stored_verdict("polite", state="read", value=True, p_true=None)

    def queries(number: int) -> int:
        stored = [StoredVerdicts(run.pk, chat, (one,)) for chat in chats[:number]]
        with CaptureQueriesContext(connection) as caught, transaction.atomic():
            verdicts_publish(stored)
            told = len(caught)
        return told

    make_webhook()
    first = queries(1)
    for number in range(4):
        make_webhook(name=f"another {number}")
    assert queries(10) == first <= 8  # with BEGIN and savepoints


def test_an_unknown_kind_is_refused() -> None:
    make_webhook(kinds=["verdicts.lost"])
    with pytest.raises(ValueError, match=r"verdicts\.lost"):
        outbox_publish(kind="verdicts.lost", payload={})
