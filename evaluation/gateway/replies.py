"""Classifies an endpoint's reply; no reply is trusted."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from evaluation.core.thinking import part_thinking
from evaluation.core.types import TokenLogprob
from evaluation.gateway.rate_limit_headers import Allowance, read_allowance, retry_after_seconds
from evaluation.gateway.refusals import NO_REFUSAL, Refusal, read_refusal

Kind = Literal[
    "answered",
    "refused",
    "cut_off",
    "too_long",
    "empty",
    "rate_limited",
    "server_error",
    "timeout",
    "connection",
    "not_json",
    "too_big",
    "auth",
    "bad_request",
    "redirect",
]

_TOO_LONG_TAGS = {"context_length_exceeded", "exceed_context_size_error"}
_TOO_LONG_WORDS = (
    *("maximum context length", "context size", "context window", "context limit", "context length"),
    *("prompt is too long", "input is too long", "maximum number of tokens allowed"),
    *("maximum prompt length", "maximum model length", "reduce the length of the messages"),
    *("exceed the configured limit", "inputs` tokens + `max_new_tokens"),
)
# OpenAI and Azure refuse an answer whose thoughts used up the limit instead of sending it empty.
_NO_ROOM_WORDS = "max_tokens or model output limit was reached"
_REFUSED_TAGS = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}
_NO_CREDIT_TAGS = {"insufficient_quota", "billing_hard_limit_reached"}
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_]{1,63}")
_REQUEST_ID = re.compile(r"[!-~]{1,200}")
LONGEST_MESSAGE = 2000  # characters
_HUGE = 1e9  # excludes infinity and overflowing integers
# NUL cannot be stored by PostgreSQL, a lone surrogate cannot be written as UTF-8.
_THINKING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_THINKING_PARTS = ("thinking", "reasoning", "redacted_thinking")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one HTTP request. Token counts are None if the endpoint did not report them.

    `text` is the answer (kinds answered and cut_off; refused: the model's words, may be empty), `thinking`
    what the model showed of its reasoning. `completion_tokens` include `reasoning_tokens`. `status` is None
    without a reply. `error` is one line, empty when answered; it contains neither the key nor the
    endpoint's message, which may repeat the chat. `retry_after` is in seconds. `allowance` is what the
    endpoint still allows, None if it does not say. `sent` is False if the request failed before it left.
    `refusal` is the parameter that the endpoint refuses; `message` its own words, without the key, never
    stored as they are.
    """

    kind: Kind
    status: int | None
    text: str = field(default="", repr=False)
    thinking: str = field(default="", repr=False)
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = field(default=None, repr=False)
    request_id: str | None = None
    latency_ms: int = 0
    retry_after: float | None = None
    allowance: Allowance | None = None
    error: str = ""
    sent: bool = True
    refusal: Refusal = NO_REFUSAL
    message: str = field(default="", repr=False)


def read_reply(*, status: int, headers: Mapping[str, str], content: bytes, secret: str = "") -> Outcome:
    """Return the outcome of a reply with this status, these headers (names in any case) and this body.

    `secret` is the API key: nothing that contains it reaches the outcome. Never raises.
    """
    data = _json_or_none(content)
    request_id = _request_id(headers, data, secret)
    if 300 <= status < 400:
        return _failed("redirect", status, "the endpoint redirects, which is not followed", request_id)
    failure = data.get("error") if isinstance(data, dict) else None
    if status >= 400:
        first = data[0] if isinstance(data, list) and data else data  # Google sends a list of errors
        failure = first.get("error") if isinstance(first, dict) else None
        return _read_failure(status, headers, failure or first, request_id, secret)
    if not isinstance(data, dict):
        return _read_nothing(status, headers, content, request_id)
    if failure and not data.get("choices"):
        # Some proxies report a failure with status 200; the number is then in the body.
        return _read_failure(_status_inside(failure), headers, failure, request_id, secret)
    return _read_answer(status, headers, data, request_id)


def _json_or_none(content: bytes) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(constant)

    try:
        return json.loads(content, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def _request_id(headers: Mapping[str, str], data: Any, secret: str) -> str | None:
    named = next((value for name, value in headers.items() if name.lower() == "x-request-id"), None)
    identifier = named or (data.get("id") if isinstance(data, dict) else None)
    if (
        not isinstance(identifier, str)
        or not _REQUEST_ID.fullmatch(identifier)
        or (secret and secret in identifier)
    ):
        return None
    return identifier


def _failed(kind: Kind, status: int | None, error: str, request_id: str | None) -> Outcome:
    shown = f"HTTP {status}: {error}" if status else error
    return Outcome(kind=kind, status=status, error=shown, request_id=request_id)


def _status_inside(failure: Any) -> int:
    code = failure.get("code") if isinstance(failure, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def _read_failure(
    status: int, headers: Mapping[str, str], failure: Any, request_id: str | None, secret: str
) -> Outcome:
    details: dict[str, Any] = failure if isinstance(failure, dict) else {}
    tags = [tag for name in ("code", "type") if (tag := _tag(details.get(name), secret))]
    message = _message(failure)
    refusal = read_refusal(failure, message)
    kind, words = _failure_kind(status, {tag.lower() for tag in tags}, message, refusal)
    shown = f" ({', '.join(dict.fromkeys(tags))})" if tags else ""
    return Outcome(
        kind=kind,
        status=status,
        error=f"HTTP {status}: {words}{shown}",
        request_id=request_id,
        retry_after=retry_after_seconds(headers),
        allowance=read_allowance(headers),
        refusal=refusal if kind in ("bad_request", "too_long") else NO_REFUSAL,
        message=message.replace(secret, "[key]") if secret else message,
    )


def _message(failure: Any) -> str:
    """Return an error's words: its message, the vendor's behind a router, or those of a list of details."""
    if isinstance(failure, str):
        return failure
    details = _dict(failure)
    message, vendor = details.get("message"), _dict(details.get("metadata")).get("raw")
    listed = (_dict(message) or details).get("detail")
    rows = listed if isinstance(listed, list) else []
    texts = [message, vendor, listed, *(_dict(row).get("msg") for row in rows)]
    return _UNSTORABLE.sub(
        "\ufffd", " ".join(text for text in texts if isinstance(text, str))[:LONGEST_MESSAGE]
    )


def _tag(value: Any, secret: str) -> str | None:
    """Return an error code such as `model_not_found`; any other text could repeat the chat or the key."""
    if not isinstance(value, str) or not _TAG.fullmatch(value) or (secret and secret in value):
        return None
    return value


def _failure_kind(status: int, tags: set[str], message: str, refusal: Refusal) -> tuple[Kind, str]:
    if tags & _TOO_LONG_TAGS or status == 413:
        return "too_long", "the chat does not fit the model's context"
    if status in (400, 422) and any(words in message.lower() for words in _TOO_LONG_WORDS):
        return "too_long", "the chat does not fit the model's context"
    if tags & _REFUSED_TAGS:
        return "refused", "the endpoint's content filter refused the request"
    if status == 402 or tags & _NO_CREDIT_TAGS:
        return "auth", "the account has no credit left"
    if status in (400, 422) and _NO_ROOM_WORDS in message.lower():
        return "cut_off", "the token limit was reached before an answer"
    if status == 401 or (status == 403 and not refusal.parameter):
        return "auth", "the endpoint does not accept the API key"
    if status == 429:
        return "rate_limited", "too many requests"
    if status in (408, 504):
        return "timeout", "the endpoint gave up waiting"
    if status >= 500:
        return "server_error", "the endpoint failed"
    if status == 404:
        return "bad_request", "the endpoint knows no such model or address"
    return "bad_request", "the endpoint rejects the request"


def _read_nothing(status: int, headers: Mapping[str, str], content: bytes, request_id: str | None) -> Outcome:
    if not content.strip():
        return _failed("empty", status, "the reply is empty", request_id)
    sent = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    html = "html" in sent.lower() or content.lstrip()[:1] == b"<"
    what = "a web page instead of an answer" if html else "a reply that is not a JSON object"
    return _failed("not_json", status, f"the endpoint sent {what}", request_id)


def _read_answer(
    status: int, headers: Mapping[str, str], data: dict[str, Any], request_id: str | None
) -> Outcome:
    choices = data.get("choices")
    if not choices:
        return _failed("empty", status, "the reply holds no answer", request_id)
    choice = choices[0] if isinstance(choices, list) else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return _failed("not_json", status, "the reply is JSON but not a chat completion", request_id)
    content, thinking = _content(message)
    kind, text, error = _kind_of_answer(choice, message, content)
    usage = _dict(data.get("usage"))
    reasoning = _count(_dict(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    return Outcome(
        kind=kind,
        status=status,
        text=_UNSTORABLE.sub("\ufffd", text),
        thinking=_UNSTORABLE.sub("\ufffd", thinking),
        finish_reason=_tag(choice.get("finish_reason"), ""),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        cached_tokens=_count(_dict(usage.get("prompt_tokens_details")).get("cached_tokens")),
        completion_tokens=_generated(usage, reasoning),
        reasoning_tokens=reasoning,
        logprobs=_logprobs(choice.get("logprobs")),
        request_id=request_id,
        allowance=read_allowance(headers),
        error=error,
    )


def _content(message: dict[str, Any]) -> tuple[str | None, str]:
    """Return a message's answer, None if it is not text, and its thinking from tags, parts and fields."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    if not all(part is None or isinstance(part, str | dict) for part in parts):
        return None, ""
    answer, thinking = "", [_text(message.get(name)) for name in _THINKING_FIELDS]
    for part in parts:
        if isinstance(part, dict) and part.get("type") in _THINKING_PARTS:
            thinking.append(_text(part.get("thinking") or part.get("text")))
        else:
            answer += _text(part)
    answer, tagged = part_thinking(answer)
    return answer, "\n\n".join(dict.fromkeys(text.strip() for text in (*thinking, tagged) if text.strip()))


def _text(value: Any) -> str:
    """Return the text of a string, of a part `{"text": …}`, or of a list of these."""
    parts = value if isinstance(value, list) else [value]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _generated(usage: dict[str, Any], reasoning: int | None) -> int | None:
    """Return all generated tokens: some endpoints count thinking in the total only."""
    completion, prompt = _count(usage.get("completion_tokens")), _count(usage.get("prompt_tokens"))
    total = _count(usage.get("total_tokens"))
    if completion is None or prompt is None or total is None:
        return completion
    missing = total - prompt - completion
    return completion + missing if missing > 0 and missing == (reasoning or missing) else completion


def _kind_of_answer(
    choice: dict[str, Any], message: dict[str, Any], content: str | None
) -> tuple[Kind, str, str]:
    refusal, finish, text = message.get("refusal"), choice.get("finish_reason"), content or ""
    if isinstance(refusal, str) and refusal.strip():
        return "refused", refusal, "the model refused to answer"
    if finish == "content_filter":
        return "refused", text, "the endpoint's content filter stopped the answer"
    if finish == "length":
        return "cut_off", text, "the answer was cut off at its token limit"
    if finish == "error":
        return "server_error", "", "the endpoint failed in the middle of the answer"
    if content is None:
        return "not_json", "", "the answer is not text"
    if not text.strip():
        return "empty", "", "the answer is empty"
    return "answered", text, ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    # NB: True is an int; and the column that stores the count has 64 bits.
    return value if type(value) is int and 0 <= value < 2**63 else None


def _logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    entries = _dict(value).get("content")
    if not isinstance(entries, list):
        return None
    read = [_token_logprob(entry) for entry in entries]
    return tuple(token for token in read if token) if read and all(read) else None


def _token_logprob(entry: Any) -> TokenLogprob | None:
    pair = _pair(entry)
    if pair is None:
        return None
    top = entry.get("top_logprobs")
    pairs = [parsed for item in top if (parsed := _pair(item))] if isinstance(top, list) else []
    return TokenLogprob(token=pair[0], logprob=pair[1], top=tuple(pairs))


def _pair(entry: Any) -> tuple[str, float] | None:
    token, logprob = _dict(entry).get("token"), _dict(entry).get("logprob")
    if not isinstance(token, str) or not isinstance(logprob, float | int) or not abs(logprob) < _HUGE:
        return None
    return _UNSTORABLE.sub("\ufffd", token), float(logprob)
