"""Shipped facts on models by name and host; each endpoint's own answers and the workspace overrule them."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from evaluation.endpoints.core.price_list import listed_model
from evaluation.endpoints.core.profile import ModelProfile, Source, merged


class Known(NamedTuple):
    """Facts on the models whose name and host match; an empty pattern matches all."""

    model: str
    host: str
    facts: Mapping[str, Any]


_OPENAI_REASONING = {
    "reasons": True,
    "effort": True,
    "temperature": False,
    "top_p": False,
    "logprobs": False,
    "token_limit": "max_completion_tokens",
}
_THINKS = {"reasons": True}
_AZURE = r"\.(openai\.azure|cognitiveservices\.azure|services\.ai\.azure)\.com$"
# Names begin the text or follow the maker's prefix ("openai/o3", "accounts/x/models/qwen3-32b").
_START = r"(^|[/:])"

# Later rows overrule earlier ones.
_TABLE: tuple[Known, ...] = (
    Known("", r"^api\.openai\.com$", {"token_limit": "max_completion_tokens", "cache_key": True}),
    Known("", _AZURE, {"token_limit": "max_completion_tokens"}),
    Known("", r"^generativelanguage\.googleapis\.com$", {"seed": False, "logprobs": False}),
    Known("", r"^api\.mistral\.ai$", {"seed": False, "effort": False, "logprobs": False}),
    Known("", r"^api\.deepseek\.com$", {"schema": "json_object", "seed": False}),
    Known("", r"^api\.anthropic\.com$", {"seed": False, "logprobs": False, "schema": "text"}),
    Known(r"(^|[-_/.])(thinking|think|reasoning|reasoner)([-_:.]|$)", "", _THINKS),
    Known(_START + r"o[1-9]\d*(-|$)", "", _OPENAI_REASONING),
    Known(_START + r"gpt-5(?!(\.\d+)?-chat)", "", _OPENAI_REASONING),
    Known(_START + r"gpt-oss", "", _THINKS | {"effort": True}),
    Known(_START + r"gemini-(2\.5|[3-9])", "", _THINKS | {"effort": True}),
    Known(_START + r"(qwen-?3|qwq)", "", _THINKS),
    Known(_START + r"qwen-?3.*(instruct|coder)", "", {"reasons": False}),
    Known(_START + r"deepseek[-_]?(r\d|reasoner)", "", _THINKS),
    Known(_START + r"deepseek-reasoner", r"^api\.deepseek\.com$", {"logprobs": False, "temperature": False}),
    Known(_START + r"(grok-3-mini|grok-[4-9])", "", _THINKS),
    Known(_START + r"grok-3-mini", "", {"effort": True}),
    Known(_START + r"grok-[4-9]", "", {"effort": False}),
    Known(_START + r"magistral", "", _THINKS),
    Known(_START + r"(kimi-k2-thinking|glm-(4\.[5-9]|[5-9])|minimax-m\d|phi-4.*reasoning)", "", _THINKS),
    Known(r"non-(reasoning|thinking)", "", {"reasons": False}),
    Known(r"claude", r"(^|\.)openrouter\.ai$", {"cache_control": True}),
)
# Cheap models that copy verdicts well enough, by host: for a formatter beside a reasoning model.
_CHEAP: tuple[tuple[str, str], ...] = (
    (r"^api\.openai\.com$", "gpt-4.1-mini"),
    (r"^api\.anthropic\.com$", "claude-haiku-4-5"),
    (r"^generativelanguage\.googleapis\.com$", "gemini-2.5-flash-lite"),
    (r"^api\.mistral\.ai$", "mistral-small-latest"),
    (r"^api\.deepseek\.com$", "deepseek-chat"),
    (r"(^|\.)openrouter\.ai$", "openai/gpt-4.1-mini"),
)


def host_of(endpoint: str) -> str:
    """Return the host of a base URL; "" for the embedded model."""
    return urlsplit(endpoint).hostname or ""


def known_profile(*, endpoint: str, model: str) -> ModelProfile:
    """Return what the shipped table and price list say of a model at an endpoint's address.

    Examples
    --------
    >>> known_profile(endpoint="https://api.openai.com/v1", model="o3").temperature
    False
    >>> known_profile(endpoint="http://localhost:8000/v1", model="Qwen/Qwen3-32B").reasons
    True
    """
    host, name = host_of(endpoint), model.lower()
    layers: list[tuple[Source, Mapping[str, Any]]] = [
        ("known model", row.facts)
        for row in _TABLE
        if (not row.model or re.search(row.model, name)) and (not row.host or re.search(row.host, host))
    ]
    listed = listed_model(endpoint=endpoint, model=model)
    if listed is not None and listed.context:
        layers.insert(0, ("price list", {"context": listed.context}))
    return merged(ModelProfile(), layers)


def cheap_model(endpoint: str) -> str:
    """Return a cheap model of the endpoint's vendor; "" where none is known."""
    host = host_of(endpoint)
    return next((model for pattern, model in _CHEAP if re.search(pattern, host)), "")
