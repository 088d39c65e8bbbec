"""A question that a live worker of another process has on its way is waited for, not asked again."""

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from evaluation.models.runs import Attempt, ModelCall, Run, Unit, WorkerLease
from tests.factories.runs import always, answering, evaluate, workspace

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS_UNTIL_THE_ANSWER = 1.0


def another_process_asks(call: ModelCall, *, alive: bool) -> Attempt:
    """As if another worker had just sent this call for a unit of its own."""
    now = timezone.now()
    expires = now + timedelta(seconds=60 if alive else -1)
    lease = WorkerLease.objects.create(
        token=uuid.uuid4(), worker="elsewhere", pid=1, beat_at=now, expires_at=expires
    )
    run = Run.objects.get()
    chat = run.run_chats.get().chat
    unit = Unit.objects.create(run=run, chat=chat, group=99, state=Unit.State.LEASED, lease=lease)
    ModelCall.objects.filter(pk=call.pk).update(state=ModelCall.State.CLAIMED, reply="")
    return Attempt.objects.create(call=call, run=run, unit=unit, number=2, sent_at=now)


def answer_later(attempt: Attempt, reply: str) -> threading.Thread:
    """The other worker's answer arrives after a while."""

    def arrive() -> None:
        Attempt.objects.filter(pk=attempt.pk).update(ended_at=timezone.now(), outcome="answered")
        ModelCall.objects.filter(pk=attempt.call_id).update(state=ModelCall.State.ANSWERED, reply=reply)
        connection.close()

    timer = threading.Timer(SECONDS_UNTIL_THE_ANSWER, arrive)
    timer.start()
    return timer


def test_its_answer_serves_both(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        evaluate("--set", "calibration", "--engine", "direct")
        attempt = another_process_asks(ModelCall.objects.get(), alive=True)
        timer = answer_later(attempt, "As it happened.\n\nVERDICTS\npolite: FALSE")
        ended = evaluate("--set", "calibration", "--engine", "direct")
        timer.join()
        assert stub.count == 1
    assert ended.code == 0
    assert ended.answer["reused"] == 1
    assert Run.objects.order_by("-id")[0].verdicts.get().value is False


def test_a_dead_worker_is_not_waited_for(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        evaluate("--set", "calibration", "--engine", "direct")
        another_process_asks(ModelCall.objects.get(), alive=False)
        ended = evaluate("--set", "calibration", "--engine", "direct")
        assert stub.count == 2
    assert ended.code == 0
