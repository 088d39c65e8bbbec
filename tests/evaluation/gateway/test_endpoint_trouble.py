"""An endpoint in trouble: one clear line, exit 4, finished work kept, the run goes on where it stopped."""

import json
import logging
import socket
from collections.abc import Sequence

import pytest
from django.apps import apps
from django.db import OperationalError
from pytest_django import Settings

from evaluation.gateway import retries, throttle
from evaluation.gateway.throttle import shared
from evaluation.models.runs import Attempt, ModelCall, Run, Unit
from evaluation.runs.worker.units import JudgedUnit, UnitWriter
from tests.factories.runs import (
    KEY,
    always,
    answering,
    evaluate,
    outcomes,
    point_at,
    the_run,
    verdicts_of,
    workspace,
)
from tests.stub_endpoint import StubReply, case_of

pytestmark = pytest.mark.django_db(transaction=True)
RUN = ("--set", "calibration", "--engine", "direct")
# The first three chats are answered before the trouble begins; five failures in a row end a run.
CHATS, ANSWERED = 10, 3
REPEATED_KEY = json.dumps({"error": {"message": f"Incorrect API key {KEY}", "code": KEY}}).encode()
TROUBLES = {
    "connection": (StubReply(close=True), "cannot be reached"),
    "auth": (StubReply(status=401, raw=REPEATED_KEY), "HTTP 401: the endpoint does not accept the API key"),
    "rate_limited": (StubReply(status=429, headers={"retry-after-ms": "1"}), "HTTP 429: too many requests"),
    "server_error": (StubReply(status=500), "HTTP 500: the endpoint failed"),
    "not_json": (StubReply(raw=b"<!doctype html><h1>Sorry</h1>"), "a web page instead of an answer"),
    "timeout": (StubReply(hang=True), "no answer within"),
    "empty": (StubReply(raw=b""), "the reply is empty"),
    "redirect": (StubReply(status=302, headers={"Location": "http://127.0.0.1:1/"}), "redirects"),
    "bad_request": (StubReply(status=404), "knows no such model"),
}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(retries, "_share", lambda text: 0.0)
    monkeypatch.setattr(throttle, "PATIENCE", 1.5)
    monkeypatch.setattr(throttle, "PROBE_SECONDS", 0.1)
    monkeypatch.setattr(shared, "FIRST_PATIENCE", 1.5)


def troubled(reply: StubReply):
    """Answers for the first chats, then trouble."""
    good = always(True)
    cases: dict[str, dict[str, bool | None]] = {f"c{n}": {} for n in range(CHATS)}

    def answer(body):
        return good(body) if int(case_of(body, cases)[1:]) < ANSWERED else reply

    return answer


@pytest.mark.parametrize("outcome", list(TROUBLES))
def test_trouble_is_one_clear_line_and_resume_asks_no_stored_question_again(
    settings: Settings, outcome: str
) -> None:
    reply, words = TROUBLES[outcome]
    workspace("polite", chats=CHATS)
    with answering(settings, troubled(reply)) as stub:
        settings.LACE_REQUEST_TIMEOUT, settings.LACE_MAX_IN_FLIGHT = 0.5, 2
        ended = evaluate(*RUN)
        assert (ended.code, ended.answer["state"]) == (4, "paused")
        assert words in ended.error
        assert f"continue with --resume {ended.answer['run']}" in ended.error
        assert f"{ANSWERED} of {CHATS} units done" in ended.error
        assert ModelCall.objects.filter(state="answered").count() == ANSWERED
        assert outcomes().count(outcome) == Attempt.objects.exclude(outcome="answered").count() > 0
        assert not Unit.objects.filter(state="leased").exists()
        stub.answer, before = always(True), stub.count
        settings.LACE_REQUEST_TIMEOUT = 20
        resumed = evaluate("--resume", str(ended.answer["run"]))
        assert stub.count - before == CHATS - ANSWERED
    assert (resumed.code, resumed.answer["state"]) == (0, "done")
    assert verdicts_of(the_run()) == {(f"c{n}", "polite"): ("read", True) for n in range(CHATS)}
    assert not Attempt.objects.filter(ended_at__isnull=True).exists()


def test_nobody_at_the_address_is_said_at_once(settings: Settings) -> None:
    workspace("polite", chats=2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    point_at(settings, address)
    ended = evaluate(*RUN)
    assert (ended.code, ended.answer["state"], ended.answer["verdicts"]) == (4, "paused", 0)
    assert ended.error.startswith(f"error: {address}: the endpoint cannot be reached")
    assert the_run().error in ended.error


def test_a_few_units_that_fail_end_the_run_with_failures_and_their_reason(settings: Settings) -> None:
    workspace("polite", chats=ANSWERED + 2)
    with answering(settings, troubled(StubReply(status=500))):
        ended = evaluate(*RUN)
    assert (ended.code, ended.answer["state"]) == (4, "done_with_failures")
    assert "2 units failed: " in ended.error
    assert "HTTP 500: the endpoint failed" in the_run().error


def test_a_database_that_fails_is_an_outside_failure_and_the_answers_before_it_are_kept(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(writer: UnitWriter, finished: Sequence[JudgedUnit]) -> list[bool]:
        raise OperationalError("disk full")

    workspace("polite", chats=3)
    with answering(settings, always(True)) as stub:
        monkeypatch.setattr(UnitWriter, "finish", fail)
        ended = evaluate(*RUN)
        assert (ended.code, ended.error) == (4, "error: the database failed: disk full")
        stored = ModelCall.objects.filter(state="answered").count()
        assert stored >= 1
        assert set(Unit.objects.values_list("state", flat=True)) == {"open"}
        monkeypatch.undo()
        before = stub.count
        assert evaluate("--resume", str(the_run().pk)).answer["state"] == "done"
        assert stub.count - before == 3 - stored


def test_a_chat_over_the_models_context_is_too_long_and_never_cut(settings: Settings) -> None:
    workspace("polite", chats=ANSWERED + 1)
    body = json.dumps({"error": {"code": "context_length_exceeded", "message": "too many tokens"}})
    with answering(settings, troubled(StubReply(status=400, raw=body.encode()))) as stub:
        ended = evaluate(*RUN)
        again = evaluate(*RUN)
        assert stub.count == ANSWERED + 1
    assert (ended.code, ended.answer["state"]) == (0, "done")
    assert verdicts_of(the_run())["c3", "polite"] == ("too_long", None)
    assert again.answer["reused"] == ANSWERED + 1


@pytest.mark.heavy
def test_the_key_is_in_no_output_no_log_and_no_table(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    workspace("polite", chats=CHATS)
    printed = ""
    with answering(settings, troubled(StubReply(status=401, raw=REPEATED_KEY))) as stub:
        for reply in (StubReply(status=401, raw=REPEATED_KEY), StubReply(status=500, raw=REPEATED_KEY)):
            stub.answer = troubled(reply)
            ended = evaluate(*RUN)
            printed += ended.out + ended.err
        settings.OPENAI_BASE_URL = f"http://{KEY}@127.0.0.1/v1"
        printed += evaluate(*RUN).err
        assert stub.seen[0].headers["Authorization"] == f"Bearer {KEY}"
    rows = [
        str(list(model._default_manager.values())) for model in apps.get_app_config("evaluation").get_models()
    ]
    assert Run.objects.count() == 2
    for text in (printed, caplog.text, *rows):
        assert KEY not in text
