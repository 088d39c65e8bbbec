"""Finds the parameter that an endpoint refuses, from the error codes and sentences of many vendors."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.endpoints.core.profile import EFFORTS, ModelProfile, Schema

# Parameters of a request that a model may refuse.
_NAMES = (
    "max_completion_tokens",
    "prompt_cache_key",
    "reasoning_effort",
    "response_format",
    "top_logprobs",
    "cache_control",
    "temperature",
    "json_schema",
    "max_tokens",
    "logprobs",
    "top_p",
    "seed",
)
_SAME = {"top_logprobs": "logprobs", "json_schema": "response_format"}
# What endpoints call our parameters in their sentences.
_OTHER_NAMES = {
    "maxoutputtokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "responseformat": "response_format",
    "response_schema": "response_format",
    "responseschema": "response_format",
    "structured output": "response_format",
    "guided_json": "response_format",
    "reasoning.effort": "reasoning_effort",
    "thinking_level": "reasoning_effort",
    "thinking level": "reasoning_effort",
    "think value": "reasoning_effort",
    "reasoning value": "reasoning_effort",
    "json output": "response_format",
    "output_config.effort": "reasoning_effort",
}
_REFUSES = re.compile(
    "|".join(
        (
            r"unsupported|not support|n't supported|unrecognized|unexpected|unavailable|is deprecated",
            r"unknown (name|field|parameter|argument)|extra (inputs|fields)|extra_forbidden",
            r"not permitted|not allowed|not available|not enabled|not (a )?valid|invalid value",
            r"does not (take|accept)|cannot both|only the default|incompatible|cannot find field",
            r"must be (one of|set to|less than|at most)|too (large|high)|valid range|supported range",
            r"maximum (allowed|value)|max allowed|enabled only for|may only be|input should be",
            r"invalid (think|reasoning) value",
        )
    ),
    re.IGNORECASE,
)
_MOST = (
    r"at most ([\d,]+)",
    r"> ([\d,]+), which is the maximum",
    r"\[\d+, ?([\d,]+)\]",
    r"less than or equal to `?([\d,]+)",
    r"from \d+ \(inclusive\) to ([\d,]+)",
    r"maximum (?:allowed )?(?:value|number)[^\d]{0,60}([\d,]+)",
    r"(?:limit|maximum) (?:is|of) ([\d,]+)",
)
# The thoughts alone need more than the limit.
_TOO_SMALL = re.compile(r"must be greater than [`'\"]?thinking", re.IGNORECASE)
_EFFORT = re.compile(rf"['\"`]({'|'.join(EFFORTS)})['\"`]")
_CONTEXT = (
    r"maximum context length (?:is|of) ([\d,]+)",
    r"([\d,]+) maximum context length",
    r"maximum prompt length is ([\d,]+)",
    r"maximum model length of ([\d,]+)",
    r"exceeds? context limit: [\d,]+ \+ [\d,]+ > ([\d,]+)",
    r"tokens? > ([\d,]+) maximum",
    r"maximum number of (?:input )?tokens allowed \(?([\d,]+)",
    r"available context size[^\d]{0,30}([\d,]+)",
    r"configured limit of ([\d,]+)",
    r"`?max_(?:new|completion)?_?tokens`? must be <= ([\d,]+)",
)
_SHORTEST_LIMIT = 16
_READ = 1000  # characters of a message; the rest may be the chat


@dataclass(frozen=True, slots=True)
class Refusal:
    """A parameter that an endpoint refuses, "" if none was found.

    `most` is the largest token limit that it names, `context` the length of its context window. `too_small`:
    the limit leaves no room for thoughts. `efforts` are those that it names, the refused one included.
    """

    parameter: str = ""
    most: int | None = None
    context: int | None = None
    too_small: bool = False
    efforts: frozenset[str] = frozenset()


NO_REFUSAL = Refusal()


def read_refusal(failure: Any, message: str) -> Refusal:
    """Return what an error object and its message say of parameters; names that we never send are ignored."""
    text = message[:_READ]
    context = _number(text, _CONTEXT)
    too_small = bool(_TOO_SMALL.search(text))
    in_words = too_small or _REFUSES.search(text)
    named = _named_by_field(failure) or (_named_in_words(text) if in_words else "")
    limits_tokens = named in ("max_tokens", "max_completion_tokens")
    most = _number(text, _MOST) if limits_tokens and context is None else None
    efforts = frozenset(_EFFORT.findall(text)) if named == "reasoning_effort" else frozenset()
    return Refusal(named, most, context, too_small, efforts)


def _named_by_field(failure: Any) -> str:
    """Return the parameter of `param`, or of the first `loc` of a list of details."""
    if not isinstance(failure, Mapping):
        return ""
    for value in (failure.get("param"), *_locations(failure)):
        name = str(value).split("[")[0].split(".")[0].lower()
        if (known := _SAME.get(name, name)) in _NAMES or name in _OTHER_NAMES:
            return _OTHER_NAMES.get(known, known)
    return ""


def _locations(failure: Mapping[str, Any]) -> Iterable[Any]:
    """Return the parts of every `loc`, as FastAPI and Mistral list invalid fields."""
    message = failure.get("message")
    holders = [failure, message if isinstance(message, Mapping) else {}]
    for holder in holders:
        details = holder.get("detail") or holder.get("details") or []
        for detail in details if isinstance(details, list) else []:
            place = detail.get("loc") if isinstance(detail, Mapping) else None
            yield from place if isinstance(place, list) else []


def _named_in_words(text: str) -> str:
    """Return the parameter that a sentence names first."""
    lower = text.lower()
    places: list[tuple[int, int, str]] = []
    for name in (*_NAMES, *_OTHER_NAMES):
        found = re.search(rf"(?<![a-z_]){re.escape(name)}(?![a-z_])", lower)
        if found:
            places.append((found.start(), -len(name), _OTHER_NAMES.get(name, _SAME.get(name, name))))
    return min(places)[2] if places else ""


def _number(text: str, patterns: Iterable[str]) -> int | None:
    for pattern in patterns:
        if found := re.search(pattern, text, re.IGNORECASE):
            number = int(found[1].replace(",", "") or 0) - ("(exclusive)" in text)
            return number if number >= _SHORTEST_LIMIT else None
    return None


_SWAPPED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_EASIER: Mapping[Schema, Schema] = {"json_schema": "json_object", "json_object": "text"}


def lesson(refusal: Refusal, *, body: Mapping[str, Any], profile: ModelProfile) -> dict[str, Any]:
    """Return the fields of a profile that make the next request acceptable; empty if nothing can be done.

    `body` is the request that was refused.
    """
    name = refusal.parameter
    limit_name = profile.token_limit
    if refusal.context is not None:
        return {} if profile.context == refusal.context else {"context": refusal.context}
    if refusal.too_small:
        return {} if profile.reasons else {"reasons": True}
    if name in _SWAPPED:
        if refusal.most is not None and refusal.most < body.get(limit_name, 0):
            return {"most_tokens": refusal.most}
        other = _SWAPPED[limit_name]
        # The other name was tried before: then the value is at fault, and it is not known which would do.
        return {"token_limit": other} if name == limit_name and limit_name in body else {}
    if name == "response_format" and profile.schema in _EASIER and name in body:
        return {"schema": _EASIER[profile.schema]}
    if name == "cache_control" and profile.cache_control:
        return {"cache_control": False}
    if name == "reasoning_effort" and name in body:
        others = [effort for effort in EFFORTS if effort in refusal.efforts - {body[name]}]
        if others and others != list(profile.efforts):
            return {"efforts": others}
    field = {"reasoning_effort": "effort", "prompt_cache_key": "cache_key"}.get(name, name)
    # What is known to be refused and sent all the same was set by the workspace as a further field.
    return {field: False} if name in body and getattr(profile, field) is not False else {}


def redacted(message: str, *, prompt: str, secret: str) -> str:
    """Return an endpoint's words in one short line, without the key and without text of the prompt.

    Examples
    --------
    >>> redacted("bad value 'my flat in Elm Street'", prompt="I say: my flat in Elm Street.", secret="")
    "bad value '[…]'"
    """
    text = " ".join(message[:_READ].split())
    text = text.replace(secret, "[key]") if secret else text
    prompt = " ".join(prompt.split())
    hidden = [False] * len(text)
    for start in range(len(text) - _REPEATED + 1):
        if text[start : start + _REPEATED] in prompt:
            hidden[start : start + _REPEATED] = [True] * _REPEATED
    shown = "".join(
        "[…]" if covered and not (place and hidden[place - 1]) else "" if covered else text[place]
        for place, covered in enumerate(hidden)
    )
    shown = _PRIVATE.sub("[…]", shown)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def key_hidden(text: str, secret: str) -> str:
    """Return a text without the key, and without any longer piece of it that an endpoint quotes.

    Examples
    --------
    >>> key_hidden("bad key sk-0123456789", "sk-0123456789"), key_hidden("no 0123456789", "sk-0123456789")
    ('bad key [key]', 'no [key]')
    """
    if not secret:
        return text
    text = text.replace(secret, "[key]")
    piece = min(len(secret), _KEY_PIECE)
    hidden = [False] * len(text)
    for start in range(len(text) - piece + 1):
        if text[start : start + piece] in secret:
            hidden[start : start + piece] = [True] * piece
    return "".join(
        "" if covered and place and hidden[place - 1] else "[key]" if covered else text[place]
        for place, covered in enumerate(hidden)
    )


_KEY_PIECE = 8  # characters in a row that count as a part of the key
_REPEATED = 12  # characters in a row that count as text of the prompt
_LONGEST = 240
_PRIVATE = re.compile(r"[^\s@]+@[^\s@]+|\b[\w-]*\d{6,}[\w-]*\b|\b(sk|key)-[\w-]+")
