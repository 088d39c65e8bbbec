"""The shapes in which nine vendors' endpoints send an answer, and the forms of its verdict block."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.factories.vendor_refusals import limit_of, prompt_tokens, said
from tests.stub_endpoint import Body, StubReply

Values = Mapping[str, bool | None]
WORDS: Mapping[bool | None, str] = {True: "TRUE", False: "FALSE", None: "NOT_APPLICABLE"}


@dataclass(frozen=True)
class Answered:
    """What a model says to one request, before the vendor's shape; `limit` is its token limit."""

    text: str
    thinking: str
    limit: int
    prompt_tokens: int
    odd: bool

    @property
    def tokens(self) -> int:
        return len(self.text) // 4 + 1


Shape = Callable[[Answered, int], dict[str, Any]]
Block = Callable[[Values], str]


# ---------- verdict blocks ----------


def plain_block(values: Values) -> str:
    return "VERDICTS\n" + "\n".join(f"{key}: {WORDS[value]}" for key, value in values.items())


def bold_block(values: Values) -> str:
    return "**Final verdict**\n\n" + "\n".join(
        f"- **{key}**: {WORDS[value]}" for key, value in values.items()
    )


def equal_block(values: Values) -> str:
    return "VERDICTS\n" + "\n".join(f"{key} = {WORDS[value]} (m2)" for key, value in values.items())


def line_block(values: Values) -> str:
    return "Verdicts: " + ", ".join(f"{key}: {WORDS[value]}" for key, value in values.items())


def table_block(values: Values) -> str:
    rows = [f"| {key} | {'N/A' if value is None else WORDS[value]} |" for key, value in values.items()]
    return "\n".join(["## Verdicts", "", "| Criterion | Verdict |", "| --- | --- |", *rows])


# ---------- shapes of an answer ----------


def plain(reply: Answered, thoughts: int) -> dict[str, Any]:
    """An answer without thoughts, or one whose thoughts are neither shown nor named in the usage (Claude)."""
    return _choice({"content": reply.text}, _usage(reply, thoughts))


def hidden(reply: Answered, thoughts: int) -> dict[str, Any]:
    """Thoughts that are counted and never shown (OpenAI)."""
    usage = _usage(reply, thoughts) | {"completion_tokens_details": {"reasoning_tokens": thoughts}}
    return _choice({"content": reply.text, "refusal": None}, usage)


def filtered(reply: Answered, thoughts: int) -> dict[str, Any]:
    """An answer with the results of Azure's content filters around it."""
    safe = {"hate": {"filtered": False, "severity": "safe"}}
    data = _choice({"content": reply.text}, _usage(reply, thoughts))
    data["choices"][0]["content_filter_results"] = safe
    return data | {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": safe}]}


def thought_tag(reply: Answered, thoughts: int) -> dict[str, Any]:
    """Thoughts in a tag, counted in the total only (Gemini)."""
    usage = _usage(reply, 0)
    usage["total_tokens"] += thoughts
    return _choice({"content": f"<thought>{reply.thinking}</thought>{reply.text}"}, usage)


def parts(reply: Answered, thoughts: int) -> dict[str, Any]:
    """Content in parts: thoughts, then the answer in two pieces (Mistral)."""
    half = len(reply.text) // 2
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": reply.thinking}], "closed": True},
        {"type": "text", "text": reply.text[:half]},
        {"type": "text", "text": reply.text[half:]},
    ]
    return _choice({"content": content, "tool_calls": None}, _usage(reply, thoughts))


def think_tag(reply: Answered, thoughts: int) -> dict[str, Any]:
    """Thoughts before `</think>`; the opening tag is part of the prompt for some chats (DeepSeek-R1)."""
    opening = "<think>\n" if reply.odd else ""
    return _choice(
        {"content": f"{opening}{reply.thinking}\n</think>\n\n{reply.text}"}, _usage(reply, thoughts)
    )


def own_field(reply: Answered, thoughts: int) -> dict[str, Any]:
    """Thoughts in a field of their own, under its older or newer name (vLLM)."""
    name = "reasoning" if reply.odd else "reasoning_content"
    return _choice({"content": f"\n\n{reply.text}", name: reply.thinking}, _usage(reply, thoughts))


def harmony(reply: Answered, thoughts: int) -> dict[str, Any]:
    """Harmony channels in the text, for some chats without their special tokens (gpt-oss)."""
    if reply.odd:
        text = f"analysis{reply.thinking}assistantfinal{reply.text}"
    else:
        final = f"<|start|>assistant<|channel|>final<|message|>{reply.text}<|return|>"
        text = f"<|channel|>analysis<|message|>{reply.thinking}<|end|>{final}"
    return _choice({"content": text}, _usage(reply, thoughts))


def _usage(reply: Answered, thoughts: int) -> dict[str, Any]:
    generated = thoughts + reply.tokens
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": generated,
        "total_tokens": reply.prompt_tokens + generated,
    }


def _choice(message: dict[str, Any], usage: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"choices": [choice], "usage": usage}


def cut_off(message: dict[str, Any]) -> Callable[[Body], StubReply]:
    """A reply whose thoughts used up the limit: no answer, and finish reason `length`."""

    def answer(body: Body) -> StubReply:
        prompt, limit = prompt_tokens(body), limit_of(body)
        usage = {"prompt_tokens": prompt, "completion_tokens": limit, "total_tokens": prompt + limit}
        return said(200, _choice(message, usage, "length"))

    return answer
