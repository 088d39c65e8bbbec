"""Faults around a run in work: of the database, of one chat's data, of one chat's requests."""

import contextlib
from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import DataError, OperationalError, transaction
from pytest_django import Settings

from evaluation.core.types import PromptMessage, Request
from evaluation.gateway.ledger import Ask, Ledger
from evaluation.models.runs import Attempt, Unit, WorkerLease
from evaluation.runs.worker import process_units as drain
from evaluation.runs.worker.time_slices import run_time_slice
from evaluation.runs.worker.units import JudgedUnit, UnitWriter
from tests.factories.runs import always, answering, evaluate, the_run, workspace
from tests.factories.workers import launched
from tests.stub_endpoint import StubReply, case_of

pytestmark = pytest.mark.django_db(transaction=True)
RUN = ("--set", "calibration", "--engine", "direct")


@pytest.mark.parametrize("helper", ["lease_beat", "_may_run"])
def test_a_database_that_fails_the_heartbeat_ends_the_work_and_gives_the_units_back(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, helper: str
) -> None:
    def fail(row_id: int) -> None:
        raise OperationalError("disk full")

    monkeypatch.setattr(drain, "LEASE", timedelta(seconds=0.4))
    monkeypatch.setattr(drain, helper, fail)
    good = always(True)
    workspace("polite", chats=30)
    with answering(settings, lambda body: StubReply(good(body).text, delay=0.3)) as stub:
        ended = evaluate(*RUN)
        assert (ended.code, ended.error) == (4, "error: the database failed: disk full")
        assert stub.count < 30
    assert not Unit.objects.filter(state="leased").exists()
    assert not WorkerLease.objects.exists()


def test_a_chat_that_the_database_does_not_take_is_parked_and_the_others_are_judged(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = UnitWriter.finish

    def refuse(writer: UnitWriter, finished: Sequence[JudgedUnit]) -> list[bool]:
        if any("case c1:" in one.work.chat.messages[0].content for one in finished):
            raise DataError("value out of range")
        return finish(writer, finished)

    monkeypatch.setattr(UnitWriter, "finish", refuse)
    with answering(settings, always(True)) as stub:
        run = launched(workspace("polite", chats=4))
        for _ in range(6):
            with contextlib.suppress(DataError):
                run_time_slice(run.pk)
        assert stub.count == 4
    run.refresh_from_db()
    assert (run.state, run.units_done, run.units_failed) == ("done_with_failures", 3, 1)


def test_a_chat_whose_every_request_is_refused_is_no_endpoint_that_is_down(settings: Settings) -> None:
    keys = [f"k{n}" for n in range(drain.FAILURES_IN_A_ROW + 2)]
    workspace(*keys, chats=3)
    cases: dict[str, dict[str, bool | None]] = {f"c{n}": {} for n in range(3)}

    def answer(body):
        return StubReply(status=400, raw=b"{}") if case_of(body, cases) == "c0" else always(True)(body)

    with answering(settings, answer):
        settings.LACE_MAX_IN_FLIGHT = 1
        ended = evaluate(*RUN, "--grouping", "criterion", "--knowledge", "none", "--layout", "chat_first")
    assert (ended.code, ended.answer["state"]) == (4, "done_with_failures")
    run = the_run()
    assert (run.units_done, run.units_failed) == (2 * len(keys), len(keys))


def test_attempts_are_numbered_on_after_one_was_taken_back(settings: Settings) -> None:
    with answering(settings, always(True)):
        run = launched(workspace("polite", chats=1))
    messages = (PromptMessage("user", ("?",)),)
    request = Request("direct", 1, messages, "m", 0.0, 9, top_p=None, seed=None, endpoint="e")
    ask = Ask(request, "key", 0, run.pk, run.units.get().pk)
    ledger = Ledger()
    with transaction.atomic():
        (first,) = ledger.open([ask])
        (second,) = ledger.again([ask])
        ledger.withdraw([(ask, first)])
        (third,) = ledger.again([ask])
    assert list(Attempt.objects.order_by("number").values_list("pk", "number")) == [
        (second.attempt_id, 2),
        (third.attempt_id, 3),
    ]
