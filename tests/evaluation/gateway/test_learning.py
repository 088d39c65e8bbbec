"""A model that refuses parameters is asked without them, once for the endpoint; other rejections pause."""

import json
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.models.judges import EndpointModel, Judge
from evaluation.models.runs import Attempt
from tests.factories.runs import MODEL, always, answering, evaluate, the_run, workspace
from tests.stub_endpoint import Body, StubReply, case_of

pytestmark = pytest.mark.django_db(transaction=True)
RUN = ("--set", "calibration", "--engine", "direct")


def refused(parameter: str, message: str = "Unsupported parameter") -> StubReply:
    error = {"message": message, "param": parameter, "code": "unsupported_parameter"}
    return StubReply(status=400, raw=json.dumps({"error": error}).encode())


def strict(body: Body) -> StubReply:
    """Like a model that reasons: another name of the limit, and no temperature."""
    for name in ("max_tokens", "temperature"):
        if name in body:
            return refused(name)
    return always(True)(body)


def learned() -> dict[str, Any]:
    found: dict[str, Any] = EndpointModel.objects.get(model=MODEL).learned
    return found


def test_refused_parameters_are_swapped_or_dropped_and_no_unit_fails(settings: Settings) -> None:
    workspace("polite", chats=12)
    with answering(settings, strict) as stub:
        ended = evaluate(*RUN)
        first = stub.count
        assert (ended.code, ended.answer["state"], ended.answer["failed"]) == (0, "done", 0)
        evaluate(*RUN, "--replicate", "1")
    assert learned() == {"token_limit": "max_completion_tokens", "temperature": False}
    assert first <= 12 + 2 * settings.LACE_MAX_IN_FLIGHT * 2  # only what was in flight met the refusals
    assert stub.count == first + 12  # the next run knows
    (judge,) = Judge.objects.all()  # what was learned makes no other judge
    assert judge.sent == {MODEL: {"max_tokens": "max_completion_tokens", "temperature": None}}


def test_a_rejection_of_every_chat_pauses_the_run_with_the_endpoints_words(settings: Settings) -> None:
    workspace("polite", chats=12)
    message = "Your organization must be verified to use this model."
    with answering(settings, lambda body: refused("model", message)) as stub:
        ended = evaluate(*RUN)
    assert (ended.code, ended.answer["state"]) == (4, "paused")
    assert message in the_run().error
    assert stub.count <= 2 * settings.LACE_MAX_IN_FLIGHT
    assert the_run().units_failed <= 1


def test_a_rejection_of_one_chat_ends_that_unit_alone(settings: Settings) -> None:
    workspace("polite", chats=8)
    cases: dict[str, dict[str, bool | None]] = {f"c{n}": {} for n in range(8)}

    def answer(body: Body) -> StubReply:
        return refused("", "odd chat") if case_of(body, cases) == "c0" else always(True)(body)

    with answering(settings, answer):
        ended = evaluate(*RUN)
    run = the_run()
    assert (ended.answer["state"], run.units_done, run.units_failed) == ("done_with_failures", 7, 1)


def test_a_limit_beyond_the_context_is_shortened_and_asked_again(settings: Settings) -> None:
    workspace("polite", chats=3)
    words = "This model's maximum context length is 3000 tokens. However, you requested more."

    def answer(body: Body) -> StubReply:
        return refused("", words) if body["max_tokens"] > 500 else always(True)(body)

    with answering(settings, answer):
        ended = evaluate(*RUN, "--knowledge", "none")
    assert (ended.code, learned()) == (0, {"context": 3000})


def test_hidden_thoughts_that_fill_the_limit_get_room(settings: Settings) -> None:
    workspace("polite", chats=3)

    def answer(body: Body) -> StubReply:
        return always(True)(body) if body["max_tokens"] > 4000 else StubReply("", finish_reason="length")

    with answering(settings, answer):
        ended = evaluate(*RUN)
    assert (ended.code, ended.answer["cut_off"], learned()) == (0, 0, {"reasons": True})


def test_the_words_of_a_rejection_never_hold_the_chat(settings: Settings) -> None:
    workspace("polite", chats=1)

    def echo(body: Body) -> StubReply:
        return refused("", f"bad request: {body['messages'][-1]['content'][:900]}")

    with answering(settings, echo):
        evaluate(*RUN)
    assert "case c0" not in Attempt.objects.get().error
