"""What nine vendors' endpoints refuse, with their status codes, error bodies and words."""

import json
from collections.abc import Callable, Collection
from typing import Any

from tests.stub_endpoint import Body, StubReply, conversation

Refusal = Callable[[Body], StubReply | None]


def nothing(body: Body) -> StubReply | None:
    """Takes everything, or ignores what it does not know."""
    return None


def o_series(body: Body) -> StubReply | None:
    """OpenAI o3: other name of the limit, no temperature and top_p, three efforts, no token probabilities."""
    if "max_tokens" in body:
        return _openai_unsupported("max_tokens", advice=" Use 'max_completion_tokens' instead.")
    for name in ("temperature", "top_p"):
        if name in body:
            return _openai_unsupported(name)
    return _openai_reasoning(body, efforts=("low", "medium", "high"))


def gpt_5(body: Body) -> StubReply | None:
    """OpenAI GPT-5: as o3, but of temperature it refuses the value, and it knows a fourth effort."""
    if "max_tokens" in body:
        return _openai_unsupported("max_tokens", advice=" Use 'max_completion_tokens' instead.")
    if "top_p" in body:
        return _openai_unsupported("top_p")
    if body.get("temperature", 1) != 1:
        words = f"'temperature' does not support {body['temperature']} with this model."
        words = f"Unsupported value: {words} Only the default (1) value is supported."
        return _openai(words, "temperature", "unsupported_value")
    return _openai_reasoning(body, efforts=("minimal", "low", "medium", "high"))


def azure(body: Body) -> StubReply | None:
    """Azure OpenAI at a classic address with an older version of the API, before reasoning models."""
    for name in ("max_completion_tokens", "reasoning_effort", "prompt_cache_key"):
        if name in body:
            return _openai(f"Unrecognized request argument supplied: {name}")
    form = body.get("response_format", {}).get("type")
    if form == "json_schema":
        words = "is enabled only for api versions 2024-08-01-preview and later"
        error = {"code": "BadRequest", "message": f"response_format value as json_schema {words}"}
        return said(400, {"error": error})
    if form == "json_object" and "json" not in conversation(body).lower():
        words = "must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        return _openai(f"'messages' {words}", "messages")
    return None


def claude(body: Body) -> StubReply | None:
    """Claude with extended thinking: a temperature of 1, a limit above the budget; the rest is ignored."""
    budget = body.get("thinking", {}).get("budget_tokens", 0)
    if body.get("temperature", 1) != 1 and budget:
        return _anthropic("`temperature` may only be set to 1 when thinking is enabled.")
    if limit_of(body) <= budget:
        return _anthropic("`max_tokens` must be greater than `thinking.budget_tokens`.")
    return None


def gemini(body: Body) -> StubReply | None:
    """Gemini: a list of errors that names all unknown fields at once."""
    unknown = ("logprobs", "top_logprobs", "seed", "prompt_cache_key", "thinking")
    lines = [
        f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
        for name in unknown
        if name in body
    ]
    if not lines:
        return None
    details = {"@type": "type.googleapis.com/google.rpc.BadRequest"} | {
        "fieldViolations": [{"description": line} for line in lines]
    }
    error = {"code": 400, "message": "\n".join(lines), "status": "INVALID_ARGUMENT", "details": [details]}
    return said(400, [{"error": error}])


def mistral(body: Body) -> StubReply | None:
    """Mistral: 422 with a list of all fields that it does not know."""
    unknown = ("max_completion_tokens", "reasoning_effort", "logprobs", "top_logprobs", "seed")
    words = "Extra inputs are not permitted"
    detail = [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": words, "input": body[name]}
        for name in (*unknown, "prompt_cache_key", "thinking")
        if name in body
    ]
    error = {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"}
    return said(422, error | {"param": None, "code": None}) if detail else None


def sglang(body: Body) -> StubReply | None:
    """SGLang: a validation error as Python prints it, for an effort that it does not know."""
    return _literal_error(body, "/sgl-workspace/sglang/python/sglang/srt/entrypoints/http_server.py")


def vllm(*, context: int) -> Refusal:
    """Return the refusals of vLLM that was started with this context and without token probabilities."""

    def answer(body: Body) -> StubReply | None:
        if body.get("logprobs"):
            asked = f"Requested sample logprobs of {body['top_logprobs']}"
            return _vllm(f"{asked}, which is greater than max allowed: 0")
        prompt, limit = prompt_tokens(body), limit_of(body)
        if prompt + limit > context:
            words = (
                f"'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum "
                f"context length is {context} tokens and your request has {prompt} input tokens"
            )
            return _vllm(f"{words} ({limit} > {context} - {prompt}).")
        return _literal_error(body, "/usr/local/lib/python3.12/dist-packages/vllm/entrypoints/utils.py")

    return answer


def ollama(body: Body) -> StubReply | None:
    """Ollama: an effort that it does not know."""
    effort = body.get("reasoning_effort", "low")
    if effort in ("high", "medium", "low", "none"):
        return None
    return _openai(f'invalid reasoning value: \'{effort}\' (must be "high", "medium", "low", or "none")')


def no_room_400(body: Body) -> StubReply:
    """The words of OpenAI and Azure for a limit that the thoughts used up."""
    words = "Could not finish the message because max_tokens or model output limit was reached."
    return _openai(f"{words} Please try again with higher max_tokens.")


def limit_of(body: Body) -> int:
    """The token limit of a request, under either name."""
    return int(body.get("max_completion_tokens") or body.get("max_tokens") or 0)


def prompt_tokens(body: Body) -> int:
    """The tokens of a prompt, roughly."""
    return len(conversation(body)) // 4


def said(status: int, body: Any) -> StubReply:
    """A reply with this status and JSON."""
    return StubReply(status=status, raw=json.dumps(body).encode())


def _openai(
    message: str, param: str | None = None, code: str | None = None, *, status: int = 400
) -> StubReply:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return said(status, {"error": error})


def _openai_unsupported(name: str, *, advice: str = "") -> StubReply:
    words = f"Unsupported parameter: '{name}' is not supported with this model.{advice}"
    return _openai(words, name, "unsupported_parameter")


def _openai_reasoning(body: Body, *, efforts: Collection[str]) -> StubReply | None:
    if body.get("logprobs"):
        return _openai("You are not allowed to request logprobs from this model", status=403)
    effort = body.get("reasoning_effort", "low")
    if effort in efforts:
        return None
    known = ", ".join(f"'{name}'" for name in efforts)
    words = f"does not support '{effort}' with this model. Supported values are: {known}."
    return _openai(f"Unsupported value: 'reasoning_effort' {words}", "reasoning_effort", "unsupported_value")


def _anthropic(message: str) -> StubReply:
    kind = "invalid_request_error"
    return said(400, {"error": {"code": kind, "message": message, "type": kind, "param": None}})


def _literal_error(body: Body, file: str) -> StubReply | None:
    effort = body.get("reasoning_effort", "low")
    if effort in ("low", "medium", "high"):
        return None
    error = (
        "{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), "
        f"'msg': \"Input should be 'low', 'medium' or 'high'\", 'input': '{effort}', "
        "'ctx': {'expected': \"'low', 'medium' or 'high'\"}}"
    )
    where = f'  File "{file}", line 1324, in create_chat_completion\n    POST /v1/chat/completions'
    return _vllm(f"1 validation error:\n  {error}\n\n{where} [{error}]")


def _vllm(message: str) -> StubReply:
    return said(
        400, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}
    )
