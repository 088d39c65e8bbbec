"""Turns of a chat out of the payloads of traces: the forms of OpenTelemetry, OpenAI, Anthropic, LangChain."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common.guarded_json import guarded_loads
from common.problems import FieldProblem, shown
from labeling.transfer.core.columns import SPEAKERS, plain

# Fields of an object without roles that hold its text, the first that does wins.
TEXTS = (
    *("content", "text", "message", "input", "query", "question", "prompt", "user_input"),
    *("output", "answer", "response", "reply", "completion"),
)
_TEXT = frozenset(("text", "input_text", "output_text"))
_HIDDEN = frozenset(("reasoning", "thinking", "redacted_thinking"))
_CALL = frozenset(("tool_call", "tool_use", "function_call", "server_tool_call"))
_RESULT = frozenset(("tool_call_response", "tool_result", "function_response", "server_tool_call_response"))
_RESULTS = ("response", "result", "content", "output", "server_tool_call_response")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one role says; `role` is one of a chat's four."""

    role: str
    content: str


def turns_of(value: Any, path: str, *, speaker: str) -> list[Turn]:
    """
    Return the turns of an input or an output.

    Calls of tools and their results are turns of the role tool. The model's reasoning is left out: no
    customer saw it. A file or picture leaves a mark such as "[image]". An object without messages is kept
    as its JSON.

    Parameters
    ----------
    value : text, JSON text, a message, a list of them, or an object that holds one of these.
    path : its place, for errors.
    speaker : role of a text that names none: user for inputs, assistant for outputs.

    Raises
    ------
    FieldProblem
        an unknown role, a part that is no part, a number or a boolean.

    Examples
    --------
    >>> turns_of('{"messages": [{"role": "human", "content": "Hi"}]}', "input", speaker="user")
    [Turn(role='user', content='Hi')]
    >>> call = {"type": "tool_call", "name": "find", "arguments": {"n": 7}}
    >>> turns_of({"role": "assistant", "parts": [call]}, "output", speaker="assistant")
    [Turn(role='tool', content='find({"n": 7})')]
    """
    if isinstance(value, str):
        return _texts(value, path, speaker)
    if value is None or value in ([], {}):
        return []
    if isinstance(value, list):
        items = [(f"{path}[{n}]", item) for n, item in enumerate(value)]
        return [turn for place, item in items for turn in turns_of(item, place, speaker=speaker)]
    if isinstance(value, dict):
        return _object(value, path, speaker)
    raise FieldProblem(path, f"holds no messages: expected text, messages or an object, not {shown(value)}")


def instructions_of(value: Any, path: str) -> list[Turn]:
    """
    Return the system turn of `gen_ai.system_instructions`: a list of parts, or its JSON text.

    Examples
    --------
    >>> instructions_of([{"type": "text", "content": "Be brief."}], "x")
    [Turn(role='system', content='Be brief.')]
    """
    parts = _parsed(value) if isinstance(value, str) else value
    if isinstance(parts, list):
        return _message({"role": "system", "parts": parts}, path) if parts else []
    return turns_of(value, path, speaker="system")


def _texts(text: str, path: str, speaker: str) -> list[Turn]:
    parsed = _parsed(text)
    if parsed is not None:
        return turns_of(parsed, path, speaker=speaker) if _is_chat(parsed) else [Turn(speaker, text)]
    return [Turn(speaker, text)] if text.strip() else []


def _parsed(text: str) -> Any:
    """Return the object or list that a text is the JSON of; None for other texts."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return guarded_loads(text)
    except FieldProblem:
        return None


def _is_chat(value: Any) -> bool:
    """Whether JSON in a text is a payload with messages; else the text is what was said."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict | list) and _is_chat(item) for item in value)
    return isinstance(value, dict) and (
        _role_of(value) is not None
        or isinstance(value.get("messages"), list)
        or isinstance(value.get("choices"), list)
        or _only_text(value) is not None
    )


def _only_text(value: Mapping[str, Any]) -> str | None:
    return next((value[key] for key in TEXTS if isinstance(value.get(key), str)), None)


def _object(value: dict[str, Any], path: str, speaker: str) -> list[Turn]:
    if isinstance(value.get("kwargs"), dict) and "lc" in value:  # LangChain's serialised messages
        value, path = {"type": str((value.get("id") or [""])[-1]), **value["kwargs"]}, f"{path}.kwargs"
    if _role_of(value) is not None:
        return _message(value, path)
    for key in ("messages", "choices"):
        if isinstance(value.get(key), list):
            items = value[key] if key == "messages" else value[key][:1]  # the customer saw the first choice
            return turns_of(items, f"{path}.{key}", speaker=speaker)
    if isinstance(value.get("message"), dict):
        return turns_of({"role": speaker, **value["message"]}, f"{path}.message", speaker=speaker)
    if value.keys() == {"args", "kwargs"}:  # what Langfuse's decorator records of a function
        kwargs = value["kwargs"]
        items = [*(value["args"] or []), *(kwargs.values() if isinstance(kwargs, dict) else [])]
        return turns_of(items[0] if len(items) == 1 else kwargs, path, speaker=speaker)
    text = _only_text(value)
    return [Turn(speaker, _json(value) if text is None else text)]


def _role_of(value: Mapping[str, Any]) -> Any:
    """Return the word for the speaker of a message, None where the object is no message."""
    if value.get("role") is not None:
        return value["role"]
    word = value.get("type")
    if isinstance(word, str) and "content" in value and plain(word).removesuffix("message") in SPEAKERS:
        return word.removesuffix("Message")
    return None


def _message(value: Mapping[str, Any], path: str) -> list[Turn]:
    word = _role_of(value)
    role = SPEAKERS.get(plain(word), "") if isinstance(word, str) else ""
    if not role:
        raise FieldProblem(f"{path}.role", f"unknown role {shown(word)}")
    key = "parts" if isinstance(value.get("parts"), list) else "content"
    content = value.get(key)
    if content is None or isinstance(content, str):
        turns = [Turn(role, content)] if content and content.strip() else []
    elif isinstance(content, list):
        turns = list(_parts(content, f"{path}.{key}", role))
    else:
        turns = [Turn(role, _json(content))]
    calls = value.get("tool_calls")
    for n, call in enumerate(calls if isinstance(calls, list) else []):
        if not isinstance(call, dict):
            raise FieldProblem(f"{path}.tool_calls[{n}]", f"must be an object, not {shown(call)}")
        turns.append(_call(call))
    return turns


def _parts(parts: list[Any], path: str, role: str) -> Iterator[Turn]:
    """Yield the turns of a message's parts; neighbouring texts are one turn."""
    texts: list[str] = []
    for n, part in enumerate(parts):
        if isinstance(part, str):
            texts.append(part)
            continue
        if not isinstance(part, dict):
            raise FieldProblem(f"{path}[{n}]", f"must be an object, not {shown(part)}")
        kind = part.get("type")
        if kind in _CALL or kind in _RESULT:
            if texts:
                yield Turn(role, "\n".join(texts))
            texts = []
            yield _call(part) if kind in _CALL else Turn("tool", _result(part))
        elif kind not in _HIDDEN:
            texts.append(_text(part, f"{path}[{n}]"))
    if texts:
        yield Turn(role, "\n".join(texts))


def _text(part: Mapping[str, Any], path: str) -> str:
    kind = part.get("type")
    for key in ("content", "text"):
        if isinstance(part.get(key), str) and (kind is None or kind in _TEXT):
            return str(part[key])
    if kind in _TEXT or not isinstance(kind, str):
        raise FieldProblem(path, "must have a type and its text in “content” or “text”")
    mark = part.get("modality") or part.get("mime_type") or kind.removesuffix("_url").removeprefix("input_")
    return f"[{mark}]"


def _call(call: Mapping[str, Any]) -> Turn:
    function = call.get("function")
    body = function if isinstance(function, dict) else call
    given = next((body[key] for key in ("arguments", "input", "args") if body.get(key) is not None), "")
    return Turn("tool", f"{body.get('name') or 'tool'}({given if isinstance(given, str) else _json(given)})")


def _result(part: Mapping[str, Any]) -> str:
    value = next((part[key] for key in _RESULTS if part.get(key) is not None), "")
    if isinstance(value, list) and all(isinstance(item, dict) and "text" in item for item in value):
        return "\n".join(str(item["text"]) for item in value)
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
