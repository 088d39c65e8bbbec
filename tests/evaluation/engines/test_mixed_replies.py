"""Whatever comes back, a request is one attempt, and a fault of the form never repeats a reasoning call."""

from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest
from pytest_django import Settings

from evaluation.gateway import retries, throttle
from evaluation.models.runs import Attempt, ModelCall, Verdict
from tests.factories.runs import (
    always,
    answering,
    block,
    by_role,
    calls_by_role,
    evaluate,
    formatted,
    the_run,
    workspace,
)
from tests.stub_endpoint import Answer, Body, StubReply, conversation

pytestmark = pytest.mark.django_db(transaction=True)
KEYS = ("polite", "clear", "short", "kind", "right")
RUN = ("--set", "calibration", "--engine", "direct", "--grouping", "criterion", "--max-in-flight", "16")
GARBLED = StubReply('{"verdicts": {"polite"')
WEB_PAGE = StubReply(raw=b"<html>gateway</html>")
TOO_BIG = StubReply(raw=b"x" * 1_100_000)
HANGS = StubReply(hang=True)
# Twenty replies in turn: no five failures in a row, which would look like an outage.
TURNS: list[StubReply | None] = [
    *(None, None, StubReply(status=429), None, StubReply(status=500)),
    *(None, HANGS, None, WEB_PAGE, None),
    *(None, StubReply(raw=b"{}"), None, StubReply(close=True), None),
    *(None, StubReply(refusal="No."), StubReply("half", finish_reason="length"), TOO_BIG, None),
]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(throttle, "PROBE_SECONDS", 0.1)


def in_turns(good: Answer) -> Answer:
    numbers = count()
    return lambda body: TURNS[next(numbers) % len(TURNS)] or good(body)


@pytest.mark.heavy
def test_requests_of_every_fate_are_as_many_as_attempts_on_record(settings: Settings) -> None:
    workspace(*KEYS, chats=130)
    with answering(settings, in_turns(always(True))) as stub:
        settings.LACE_REQUEST_TIMEOUT = 0.3
        ended = evaluate(*RUN)
        received = stub.count
    assert received >= 850
    assert ended.answer["state"] == "done_with_failures"
    assert not Attempt.objects.filter(ended_at=None).exists()
    fates = Counter(Attempt.objects.values_list("outcome", flat=True))
    # On a busy machine a request may time out before the endpoint has read it; it is on record, too.
    hung = sum(TURNS[number % len(TURNS)] == HANGS for number in range(received))
    assert received <= fates.total() <= received + fates["timeout"] - hung
    assert fates.keys() == {
        *("answered", "rate_limited", "server_error", "timeout", "not_json"),
        *("empty", "connection", "refused", "cut_off", "too_big"),
    }
    verdicts = Verdict.objects.filter(run=the_run())
    assert verdicts.count() == 130 * len(KEYS)
    assert not verdicts.exclude(state="read").exclude(value=None).exists()
    assert ModelCall.objects.filter(state="answered").count() == fates["answered"]


def prose(body: Body) -> StubReply:
    """A rationale without a block, another one for every chat."""
    case = conversation(body).split("In case ")[1].split(":")[0]
    return StubReply(f"Kind throughout in {case}.")


def broken_forms() -> Callable[[Body], StubReply]:
    numbers = count()
    kinds = (GARBLED, TOO_BIG, StubReply("no JSON at all"), StubReply("{}"), GARBLED)
    return lambda body: kinds[next(numbers) % len(kinds)]


@pytest.mark.heavy
def test_200_formatting_errors_repeat_no_reasoning_call(settings: Settings) -> None:
    workspace("polite", chats=200)
    asked: list[str] = []

    def reasoning(body: Body) -> StubReply:
        asked.append(conversation(body))
        return prose(body)

    with answering(settings, by_role(reasoning=reasoning, formatter=broken_forms())) as stub:
        failed = evaluate(*RUN)
        assert failed.answer["state"] == "done_with_failures"
        assert calls_by_role() == {"direct": 200, "formatter": 200}
        assert not Verdict.objects.filter(state="read").exists()
        stub.answer = by_role(reasoning=reasoning, formatter=lambda body: formatted({"polite": "true"}))
        evaluate("--resume", str(failed.answer["run"]))
    assert len(asked) == len(set(asked)) == 200
    assert Counter(Verdict.objects.values_list("state", flat=True)) == {"read": 40, "unparsed": 160}


def test_an_answer_that_is_read_otherwise_later_is_not_asked_again(settings: Settings) -> None:
    workspace("polite", chats=3)
    with answering(settings, lambda body: block({"polite": True})) as stub:
        evaluate(*RUN)
        Verdict.objects.all().delete()
        evaluate(*RUN)
        assert stub.count == 3
