"""Every HTTP request is one attempt on record, with its outcome, tokens and cost."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.gateway import retries
from evaluation.models.runs import Attempt, ModelCall, Verdict
from tests.factories.runs import (
    MODEL,
    always,
    answering,
    block,
    evaluate,
    outcomes,
    the_run,
    verdicts_of,
    workspace,
)
from tests.stub_endpoint import Answer, Body, StubReply

pytestmark = pytest.mark.django_db(transaction=True)
RUN = ("--set", "calibration", "--engine", "direct")
GOOD = block({"polite": True})
# What each case gets before its good answer (or instead of one), and the outcomes on record.
TROUBLE: dict[str, tuple[list[StubReply], list[str]]] = {
    "c0": ([], ["answered"]),
    "c1": ([StubReply(status=429)], ["rate_limited", "answered"]),
    "c2": ([StubReply(status=500), StubReply(status=503)], ["server_error", "server_error", "answered"]),
    "c3": ([StubReply(raw=b"<html>gateway</html>")], ["not_json", "answered"]),
    "c4": ([StubReply(raw=b"{}")], ["empty", "answered"]),
    "c5": ([StubReply(close=True)], ["connection", "answered"]),
    "c6": ([StubReply(raw=b"x" * 1_100_000)], ["too_big"]),
    "c7": ([StubReply(status=400)], ["bad_request"]),
    "c8": ([StubReply(refusal="I cannot help with that.")], ["refused"]),
    "c9": ([StubReply("half", finish_reason="length")] * 2, ["cut_off", "cut_off"]),
}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)


def case_of(body: Body) -> str:
    return next(case for case in TROUBLE if f"case {case}:" in body["messages"][-1]["content"])


def troubled() -> Answer:
    waiting = {case: [*replies, GOOD] for case, (replies, _) in TROUBLE.items()}
    return lambda body: waiting[case_of(body)].pop(0)


def with_usage(**usage: Any) -> Answer:
    """A good answer with these token counts."""
    choice = {"message": {"content": GOOD.text}, "finish_reason": "stop"}
    return lambda body: StubReply(raw=json.dumps({"choices": [choice], "usage": usage}).encode())


def test_every_request_is_one_attempt_with_its_outcome(settings: Settings) -> None:
    workspace("polite", chats=len(TROUBLE))
    with answering(settings, troubled()) as stub:
        ended = evaluate(*RUN)
        assert Attempt.objects.count() == stub.count == sum(len(named) for _, named in TROUBLE.values())
    assert Counter(outcomes()) == Counter(name for _, named in TROUBLE.values() for name in named)
    for case, (_, named) in TROUBLE.items():
        attempts = Attempt.objects.filter(unit__chat__external_id=case).order_by("id")
        assert list(attempts.values_list("outcome", flat=True)) == named
    assert not Attempt.objects.filter(ended_at__isnull=True).exists()
    assert (ended.code, ended.answer["state"]) == (4, "done_with_failures")


def test_only_a_usable_reply_becomes_a_verdict(settings: Settings) -> None:
    workspace("polite", chats=len(TROUBLE))
    with answering(settings, troubled()):
        evaluate(*RUN)
    found = {case: state for (case, _), (state, _) in verdicts_of(the_run()).items()}
    good = {f"c{n}": "read" for n in range(6)}
    assert found == good | {"c6": "failed", "c7": "failed", "c8": "refused", "c9": "cut_off"}
    assert not Verdict.objects.exclude(state="read").exclude(value=None).exists()


def test_attempts_of_a_call_are_numbered_and_say_what_happened(settings: Settings) -> None:
    workspace("polite", chats=3)
    with answering(settings, troubled()):
        evaluate(*RUN)
    attempts = Attempt.objects.filter(unit__chat__external_id="c2").order_by("number")
    assert list(attempts.values_list("number", "status")) == [(1, 500), (2, 503), (3, 200)]
    assert attempts[0].error == "HTTP 500: the endpoint failed"
    assert attempts[2].request_id == "chatcmpl-stub"


def test_two_runs_that_ask_the_same_question_share_its_numbering(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, lambda body: StubReply(status=400)):
        evaluate(*RUN)
        evaluate(*RUN)
    assert list(Attempt.objects.order_by("id").values_list("number", flat=True)) == [1, 2]
    assert ModelCall.objects.get().state == "failed"


def test_tokens_and_cost_come_from_the_replies_and_the_price_file(settings: Settings, tmp_path: Path) -> None:
    workspace("polite", chats=2)
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({MODEL: {"input": 2, "cached_input": 1, "output": 8}}))
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    with answering(settings, with_usage(**usage), prices=str(prices)):
        ended = evaluate(*RUN)
    assert (ended.answer["prompt_tokens"], ended.answer["completion_tokens"]) == (2000, 200)
    assert ended.answer["cost_usd"] == 0.0048
    assert set(Attempt.objects.values_list("cost_usd", flat=True)) == {Decimal("0.0024")}
    assert the_run().cached_tokens == 800


def test_an_unknown_price_is_unknown_and_not_0(settings: Settings, tmp_path: Path) -> None:
    workspace("polite", chats=1)
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"another-model": {"input": 2, "output": 8}}))
    with answering(settings, always(True), prices=str(prices)):
        ended = evaluate(*RUN)
    assert ended.answer["cost_usd"] is None
    assert Attempt.objects.get().cost_usd is None
    assert the_run().cost_usd is None


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": 2**40, "completion_tokens": -1}])
def test_token_counts_nobody_can_believe_are_unknown(
    settings: Settings, tmp_path: Path, usage: dict[str, int]
) -> None:
    workspace("polite", chats=1)
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({MODEL: {"input": 2, "output": 8}}))
    with answering(settings, with_usage(**usage), prices=str(prices)):
        ended = evaluate(*RUN)
    assert (ended.code, ended.answer["cost_usd"], ended.answer["verdicts"]) == (0, None, 1)
    call = ModelCall.objects.get()
    assert (call.prompt_tokens, call.completion_tokens) == (None, None)


def test_log_probabilities_are_kept(settings: Settings) -> None:
    workspace("polite", chats=1)
    token = {"token": "TRUE", "logprob": -0.1, "top_logprobs": [{"token": "FALSE", "logprob": -2.3}]}
    choice = {"message": {"content": GOOD.text}, "finish_reason": "stop", "logprobs": {"content": [token]}}
    with answering(settings, lambda body: StubReply(raw=json.dumps({"choices": [choice]}).encode())):
        assert evaluate(*RUN).code == 0
    kept = [{"token": "TRUE", "logprob": -0.1, "top": [["FALSE", -2.3]]}]
    assert ModelCall.objects.get().logprobs == kept
