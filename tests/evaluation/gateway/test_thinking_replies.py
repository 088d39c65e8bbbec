"""Thinking in a reply's fields, parts and tags: kept beside the answer, counted and charged."""

import json
from typing import Any

import pytest

from evaluation.gateway.replies import Outcome, read_reply


def read(message: dict[str, Any], *, finish: str = "stop", **usage: Any) -> Outcome:
    choice = {"message": {"role": "assistant", **message}, "finish_reason": finish}
    body = {"choices": [choice], "usage": usage}
    return read_reply(status=200, headers={}, content=json.dumps(body).encode())


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Kind.", "reasoning_content": "Hm."},  # DeepSeek, vLLM, Qwen
        {"content": "Kind.", "reasoning": "Hm."},  # OpenRouter, Ollama
        {"content": "Kind.", "reasoning": "Hm.", "reasoning_content": "Hm."},
        {"content": "<think>\nHm.\n</think>\n\nKind."},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                {"type": "text", "text": "Kind."},
            ]
        },
        {
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "text", "text": "Ki"},
                {"type": "text", "text": "nd."},
            ]
        },
        {
            "content": "<|channel|>analysis<|message|>Hm.<|end|>"
            "<|start|>assistant<|channel|>final<|message|>Kind."
        },
    ],
)
def test_the_answer_and_the_thinking_are_apart(message: dict[str, Any]) -> None:
    outcome = read(message)
    assert (outcome.kind, outcome.text, outcome.thinking) == ("answered", "Kind.", "Hm.")


def test_parts_of_text_are_joined() -> None:
    outcome = read({"content": [{"type": "text", "text": "Ki"}, "nd."]})
    assert (outcome.kind, outcome.text, outcome.thinking) == ("answered", "Kind.", "")


@pytest.mark.parametrize("content", [None, "", "<think>Hm.", [], [{"type": "thinking", "thinking": "Hm."}]])
def test_thinking_alone_is_an_empty_answer(content: Any) -> None:
    assert read({"content": content, "reasoning": "Hm."}).kind == "empty"
    cut = read({"content": content, "reasoning": "Hm."}, finish="length")
    assert (cut.kind, cut.text, cut.thinking) == ("cut_off", "", "Hm.")


@pytest.mark.parametrize("content", [7, True, {"text": 1}, [7], [[]]])
def test_content_that_is_no_text_is_none(content: Any) -> None:
    assert read({"content": content}).kind in ("not_json", "empty")


def test_thinking_tokens_are_read_and_charged_once() -> None:
    inside = read(
        {"content": "Kind."},
        prompt_tokens=100,
        completion_tokens=50,
        total_tokens=150,
        completion_tokens_details={"reasoning_tokens": 40},
    )
    assert (inside.completion_tokens, inside.reasoning_tokens) == (50, 40)
    # Some endpoints count thinking in the total only.
    beside = read(
        {"content": "Kind."},
        prompt_tokens=100,
        completion_tokens=10,
        total_tokens=150,
        completion_tokens_details={"reasoning_tokens": 40},
    )
    assert (beside.completion_tokens, beside.reasoning_tokens) == (50, 40)
    unnamed = read({"content": "Kind."}, prompt_tokens=100, completion_tokens=10, total_tokens=150)
    assert (unnamed.completion_tokens, unnamed.reasoning_tokens) == (50, None)
    odd = read({"content": "Kind."}, prompt_tokens=100, completion_tokens=10, total_tokens=90)
    assert odd.completion_tokens == 10
