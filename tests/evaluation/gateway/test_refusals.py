"""Which parameter an endpoint refuses, in the words of many vendors, and what is learned from it."""

import json
from typing import Any

import pytest

from evaluation.endpoints.core.profile import ModelProfile
from evaluation.gateway.refusals import Refusal, lesson, redacted
from evaluation.gateway.replies import Outcome, read_reply

THOUGHTS = "`max_tokens` must be greater than `thinking.budget_tokens`."
PYDANTIC = "{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low'\"}"
EXTRA = "Extra inputs are not permitted"
EXCEEDS = "input length and `max_tokens` exceed context limit: 199000 + 8000 > 204798"
RANGE = "a maxOutputTokens value of 99999 but the supported range is from 1 (inclusive) to 65537 (exclusive)."


def reply(body: Any, *, status: int = 400) -> Outcome:
    return read_reply(status=status, headers={}, content=json.dumps(body).encode(), secret="sk-secret")


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        (said("Unsupported parameter: 'max_tokens' is not supported.", param="max_tokens"), "max_tokens"),
        (said("Only the default (1) value is supported.", param="temperature"), "temperature"),
        (said("Unrecognized request argument supplied: max_completion_tokens"), "max_completion_tokens"),
        (said("`temperature` and `top_p` cannot both be specified for this model."), "temperature"),
        ([said('Invalid JSON payload received. Unknown name "seed": Cannot find field.')], "seed"),
        ({"message": {"detail": [{"loc": ["body", "seed"], "msg": EXTRA}]}}, "seed"),
        ({"detail": [{"loc": ["body", "reasoning_effort"], "msg": EXTRA}]}, "reasoning_effort"),
        (said("This response_format type is unavailable now"), "response_format"),
        (said("Invalid schema", param="response_format.json_schema"), "response_format"),
        ({"error": 'think value "minimal" is not supported for this model'}, "reasoning_effort"),
        ({"object": "error", "message": "top_logprobs must be one of 0 to 0", "code": 400}, "logprobs"),
        (
            said("Provider returned error", metadata={"raw": '{"message":"seed is not supported"}'}),
            "seed",
        ),
        (said("`temperature` may only be set to 1 when thinking is enabled."), "temperature"),
        (said('invalid reasoning value: \'xhigh\' (must be "high" or "none")'), "reasoning_effort"),
        (said("Requested sample logprobs of 5, which is greater than max allowed: 0"), "logprobs"),
        (said("response_format value as json_schema is enabled only for api versions"), "response_format"),
        (said("deepseek-reasoner does not support Json Output."), "response_format"),
        ({"object": "error", "message": f"1 validation error: {PYDANTIC}"}, "reasoning_effort"),
        (said(THOUGHTS), "max_tokens"),
        (said("The model wrote seed in its last answer."), ""),
        (said("Invalid 'messages[0].content': string too long", param="messages"), ""),
    ],
)
def test_the_parameter_that_an_endpoint_refuses_is_found(body: Any, parameter: str) -> None:
    outcome = reply(body, status=422 if isinstance(body, dict) and "detail" in body else 400)
    assert (outcome.kind, outcome.refusal.parameter) == ("bad_request", parameter)


@pytest.mark.parametrize(
    ("message", "most"),
    [
        ("max_tokens is too large: 32000. This model supports at most 16384 completion tokens.", 16384),
        ("max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens", 64000),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        (RANGE, 65536),
    ],
)
def test_the_largest_limit_that_it_names_is_kept(message: str, most: int) -> None:
    refusal = reply(said(message)).refusal
    learned = lesson(refusal, body={"max_tokens": 99_999}, profile=ModelProfile())
    assert learned == {"most_tokens": most}


@pytest.mark.parametrize(
    ("message", "context"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.", 8192),
        ("'max_tokens' is too large: 40000. This model's maximum context length is 32768 tokens", 32768),
        (EXCEEDS, 204798),
        ("prompt is too long: 208310 tokens > 200000 maximum", 200000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1048576),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32768),
        ("This model's maximum prompt length is 131072 but the request contains 153000 tokens.", 131072),
        ("the request exceeds the available context size (4096), try increasing it", 4096),
        ("Input tokens exceed the configured limit of 272000 tokens.", 272000),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", 4096),
        ("Please reduce the length of the messages or completion.", None),
        ("the input length exceeds the context length", None),
        ("Input is too long for requested model.", None),
    ],
)
def test_a_context_that_is_too_short_is_recognised_in_every_vendors_words(
    message: str, context: int | None
) -> None:
    outcome = reply(said(message))
    assert (outcome.kind, outcome.refusal.context) == ("too_long", context)


@pytest.mark.parametrize(
    ("parameter", "body", "learned"),
    [
        ("max_tokens", {"max_tokens": 650}, {"token_limit": "max_completion_tokens"}),
        ("response_format", {"response_format": {}}, {"schema": "json_object"}),
        ("reasoning_effort", {"reasoning_effort": "low"}, {"effort": False}),
        ("temperature", {"temperature": 0.0}, {"temperature": False}),
        ("temperature", {}, {}),
        ("", {"temperature": 0.0}, {}),
    ],
)
def test_what_was_refused_is_swapped_or_dropped_if_it_was_sent(
    parameter: str, body: dict[str, Any], learned: dict[str, Any]
) -> None:
    assert lesson(Refusal(parameter), body=body, profile=ModelProfile()) == learned


def test_a_limit_below_the_thinking_budget_tells_that_the_model_reasons() -> None:
    refusal, body = reply(said(THOUGHTS)).refusal, {"max_tokens": 650}
    assert lesson(refusal, body=body, profile=ModelProfile()) == {"reasons": True}
    assert lesson(refusal, body=body, profile=ModelProfile(reasons=True)) == {}


def test_an_effort_gives_way_to_those_that_the_endpoint_names() -> None:
    words = (
        "'reasoning_effort' does not support 'xhigh' with this model. Supported values are: 'low' and 'high'."
    )
    refusal = reply(said(f"Unsupported value: {words}", param="reasoning_effort")).refusal
    body = {"reasoning_effort": "xhigh"}
    learned = lesson(refusal, body=body, profile=ModelProfile())
    assert learned == {"efforts": ["low", "high"]}
    assert ModelProfile().learn(learned).nearest_effort("xhigh") == "high"
    # The same words again: the nearest one did not help either.
    assert lesson(refusal, body=body, profile=ModelProfile(efforts=["low", "high"])) == {"effort": False}


def test_what_the_workspace_sends_after_all_is_not_learned_twice() -> None:
    profile = ModelProfile(seed=False, extra={"seed": 7})
    assert lesson(Refusal("seed"), body={"seed": 7}, profile=profile) == {}


def test_a_forbidden_parameter_is_no_rejected_key() -> None:
    outcome = reply(said("You are not allowed to request logprobs from this model"), status=403)
    assert (outcome.kind, outcome.refusal.parameter) == ("bad_request", "logprobs")
    assert reply(said("You are not allowed to use this model"), status=403).kind == "auth"
    assert reply(said("Unsupported parameter: seed"), status=401).kind == "auth"


def test_a_limit_that_the_thoughts_used_up_is_a_cut_off_answer() -> None:
    words = "Could not finish the message because max_tokens or model output limit was reached."
    outcome = reply(said(f"{words} Please try again with higher max_tokens."))
    assert (outcome.kind, outcome.text) == ("cut_off", "")


def test_a_schema_gives_way_step_by_step_and_ends_as_text() -> None:
    profile, refusal = ModelProfile(), Refusal("response_format")
    for expected in ("json_object", "text"):
        profile = profile.learn(lesson(refusal, body={"response_format": {}}, profile=profile))
        assert profile.schema == expected
    assert lesson(refusal, body={}, profile=profile) == {}


def test_an_endpoints_words_are_shown_without_key_prompt_and_private_data() -> None:
    prompt = "The chat:\nMy name is Ada and I live in Elm Street."
    message = "value 'My name is Ada and I live' from ada@example.org, order 12345678, sk-secret: bad seed"
    shown = redacted(message, prompt=prompt, secret="sk-secret")
    assert shown == "value '[…]' from […] order […], [key]: bad seed"
    assert len(redacted("x " * 900, prompt="", secret="")) == 240
