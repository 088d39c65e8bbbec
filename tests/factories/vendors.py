"""Nine vendors' endpoints on loopback: addresses, refusals and shapes of answers, with planted verdicts.

The stub is a proxy: requests to `http://api.openai.com/v1` reach it under that address, so that hosts and
paths count as they do in use.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from unittest.mock import patch
from urllib.parse import urlsplit

from aiohttp import web
from django.test import override_settings

from labeling.models.chats import ChatSet
from labeling.models.rubric import Rubric
from tests.factories import vendor_refusals as refusals
from tests.factories import vendor_shapes as shapes
from tests.factories.rows import make_chat, make_criterion, make_set
from tests.factories.vendor_refusals import Refusal, limit_of, no_room_400, prompt_tokens, said
from tests.factories.vendor_shapes import WORDS, Answered, Block, Shape, Values
from tests.stub_endpoint import (
    Answer,
    Body,
    SeenRequest,
    StubEndpoint,
    StubReply,
    asked_text,
    conversation,
    fenced_text,
)

Naming = Literal["known", "unknown"]
NAMINGS: tuple[Naming, ...] = get_args(Naming)

# What the bot says in a chat, by the verdict that it plants.
PLANTS: Mapping[str, Mapping[bool | None, str]] = {
    "polite": {True: "You are most welcome.", False: "Find it out for yourself."},
    "wrong_fact": {True: "Our shop opens at twenty-five o'clock.", False: "Our shop opens at nine o'clock."},
    "offers_refund": {
        True: "You get all your money back.",
        False: "We keep the money.",
        None: "Nothing was bought yet.",
    },
}
# Stands in every thought: no request may hold it.
THOUGHT = "Between you and me, a first thought:"
KEY = "sk-canary-55d0e7"
IN_FLIGHT = 4
# Formatters of the vendors that have one: they do not think and take what they are sent.
CHEAP_MODELS = ("gpt-4.1-mini", "gemini-2.5-flash-lite", "mistral-small-latest")
# The address and the model's name when neither says who answers.
UNKNOWN_DOMAIN, UNKNOWN_MODEL = "llm-gateway.internal", "house-judge"


@dataclass(frozen=True)
class Vendor:
    """One vendor's endpoint and model.

    `address` is what OPENAI_BASE_URL holds. `thinking` says where its thoughts are, `thoughts` how many
    tokens they take; `short` is its reply to a limit below that. Every `prose_every`th chat is answered
    without a block (0: none). `workspace` is what a lead sets for the model, `learned` what runs teach.
    """

    name: str
    address: str
    model: str
    refuses: Refusal
    shape: Shape
    block: Block
    thinking: str
    thoughts: int = 900
    short: Callable[[Body], StubReply] | None = None
    prose_every: int = 0
    workspace: Mapping[str, Any] = field(default_factory=dict)
    learned: Mapping[Naming, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def shows(self) -> bool:
        """Whether replies hold its thoughts."""
        return self.thinking.startswith(("in ", "before "))

    def base_url(self, naming: Naming) -> str:
        """The address in the settings, with an unknown host if nothing is to be known."""
        if naming == "known":
            return self.address
        parts = urlsplit(self.address)
        host = f"{re.sub('[^a-z0-9]+', '-', self.name.lower()).strip('-')}.{UNKNOWN_DOMAIN}"
        return parts._replace(netloc=host, path=parts.path.replace(self.model, UNKNOWN_MODEL)).geturl()

    def model_name(self, naming: Naming) -> str:
        return self.model if naming == "known" else UNKNOWN_MODEL


def planted(number: int) -> dict[str, bool | None]:
    """The verdicts on the chat with this number; every combination occurs among 12 chats."""
    flags = {"polite": number % 2 == 0, "wrong_fact": number // 2 % 2 == 0}
    return flags | {"offers_refund": (True, False, None)[number % 3]}


def planted_set(chats: int, *, name: str = "vendors") -> ChatSet:
    """A rubric of three criteria and a set of numbered chats."""
    rubric = Rubric.objects.create(name=name)
    for key, plants in PLANTS.items():
        make_criterion(key, rubric=rubric, passes_when=key != "wrong_fact", allow_na=None in plants)
    rows = []
    for number in range(chats):
        lines = [PLANTS[key][value] for key, value in planted(number).items()]
        turns = [("user", f"Hello, this is case c{number}."), ("assistant", " ".join(lines))]
        rows.append(make_chat(f"c{number}", messages=turns))
    return make_set(rubric, *rows, name=name)


def answer_of(vendor: Vendor) -> Answer:
    """The vendor's answers: a refusal, or the planted verdicts in its shape."""

    def answer(body: Body) -> StubReply:
        cheap = body["model"] in CHEAP_MODELS
        if not cheap and (refusal := vendor.refuses(body)):
            return refusal
        if not cheap and limit_of(body) < vendor.thoughts and vendor.short is not None:
            return vendor.short(body)
        shape, thoughts = (shapes.plain, 0) if cheap else (vendor.shape, vendor.thoughts)
        data = {"id": "chatcmpl-1", "object": "chat.completion", "model": body["model"], "created": 1}
        return said(200, data | shape(_answered(vendor, body), thoughts))

    return answer


def _answered(vendor: Vendor, body: Body) -> Answered:
    text = conversation(body)
    asked = asked_text(body)
    found = re.search(r"\bcase c(\d+)\b", text)
    if found is None:  # the formatter never sees the chat
        keys = re.findall(r"^- (\w+): true, false", asked, re.MULTILINE)
        values = {key: _concluded(fenced_text(body), key) for key in keys}
        words, thoughts = _copied(values, body), _copied(_opposite(values), body)
        return _reply(body, words, thoughts, odd=False)
    number = int(found[1])
    values = {
        key: _value_of(text, key) for key in re.findall(r"^(?:- )?(\w+): (?:TRUE|FALSE)", asked, re.MULTILINE)
    }
    if "Answers to argue for" in asked:
        brief = "\n\n".join(f"{key}\n{_quote(key, value)} That decides it." for key, value in values.items())
        return _reply(body, brief, "the other side is right, I doubt this one.", odd=number % 2 == 1)
    prose = "\n\n".join(
        f"{key}\n{_quote(key, value)} KEEP. So on {key} the answer is {WORDS[value]}."
        for key, value in values.items()
    )
    unmarked = bool(vendor.prose_every) and number % vendor.prose_every == 0
    block = "" if unmarked else f"\n\n{vendor.block(values)}"
    return _reply(body, prose + block, shapes.plain_block(_opposite(values)), odd=number % 2 == 1)


def _reply(body: Body, text: str, thoughts: str, *, odd: bool) -> Answered:
    thinking = f"{THOUGHT}\n\n{thoughts}"
    return Answered(text, thinking, limit_of(body), prompt_tokens(body), odd)


def _value_of(text: str, key: str) -> bool | None:
    (value,) = (value for value, line in PLANTS[key].items() if line in text)
    return value


def _quote(key: str, value: bool | None) -> str:
    return f'The bot writes [m2: "{PLANTS[key][value]}"].'


def _opposite(values: Values) -> Values:
    return {key: not value for key, value in values.items()}


def _concluded(rationale: str, key: str) -> bool | None:
    (word,) = re.findall(rf"on {key} the answer is (\w+)\.", rationale)
    return {word: value for value, word in WORDS.items()}[word]


def _copied(values: Values, body: Body) -> str:
    """The formatter's answer: exact with a schema, else with what models add."""
    words = {key: WORDS[value].lower() for key, value in values.items()}
    form = body.get("response_format", {}).get("type")
    if form == "json_schema":
        entries = {key: {"explanation": "As it says.", "value": word} for key, word in words.items()}
        return json.dumps({"verdicts": entries})
    if form == "json_object":
        return json.dumps({key: {"value": word.upper()} for key, word in words.items()})
    return f"Here is the object:\n\n```json\n{json.dumps({'verdicts': words}, indent=2)}\n```\nThat is all."


_THINKING_ALOUD = f"{THOUGHT} polite: TRUE?"
_OPENAI = {
    "token_limit": "max_completion_tokens",
    "temperature": False,
    "logprobs": False,
    "reasons": True,
}
_EFFORTS = ["low", "medium", "high"]
_CLAUDE = {"temperature": False, "reasons": True}

VENDORS: Sequence[Vendor] = (
    Vendor(
        "OpenAI o-series",
        "http://api.openai.com/v1",
        "o3",
        refusals.o_series,
        shapes.hidden,
        shapes.plain_block,
        "hidden, counted",
        short=shapes.cut_off({"content": ""}),
        learned={"known": {}, "unknown": _OPENAI | {"efforts": _EFFORTS}},
    ),
    Vendor(
        "OpenAI GPT-5",
        "http://api.openai.com/v1",
        "gpt-5-mini",
        refusals.gpt_5,
        shapes.hidden,
        shapes.bold_block,
        "hidden, counted",
        short=no_room_400,
        learned={"known": {}, "unknown": _OPENAI | {"efforts": ["minimal", *_EFFORTS]}},
    ),
    Vendor(
        "Azure OpenAI",
        "http://contoso.openai.azure.com/openai/deployments/prod-judge?api-version=2024-06-01",
        "prod-judge",
        refusals.azure,
        shapes.filtered,
        shapes.equal_block,
        "none",
        thoughts=0,
        prose_every=4,
        learned={
            "known": {"token_limit": "max_tokens", "schema": "json_object"},
            "unknown": {"effort": False, "schema": "json_object"},
        },
    ),
    Vendor(
        "Claude",
        "http://api.anthropic.com/v1",
        "claude-sonnet-4-5",
        refusals.claude,
        shapes.plain,
        shapes.table_block,
        "hidden, not counted",
        prose_every=4,
        workspace={"extra": {"thinking": {"type": "enabled", "budget_tokens": 4000}}},
        learned={"known": _CLAUDE, "unknown": _CLAUDE},
    ),
    Vendor(
        "Gemini",
        "http://generativelanguage.googleapis.com/v1beta/openai",
        "gemini-2.5-flash",
        refusals.gemini,
        shapes.thought_tag,
        shapes.line_block,
        "in `<thought>`",
        short=shapes.cut_off({}),
        learned={"known": {}, "unknown": {"logprobs": False, "reasons": True}},
    ),
    Vendor(
        "Mistral",
        "http://api.mistral.ai/v1",
        "magistral-medium-latest",
        refusals.mistral,
        shapes.parts,
        shapes.plain_block,
        "in parts of the content",
        short=shapes.cut_off(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": _THINKING_ALOUD}]}]}
        ),
        prose_every=4,
        learned={"known": {}, "unknown": {"logprobs": False, "effort": False, "reasons": True}},
    ),
    Vendor(
        "DeepSeek-R1 (SGLang)",
        "http://r1.internal:30000/v1",
        "deepseek-ai/DeepSeek-R1",
        refusals.sglang,
        shapes.think_tag,
        shapes.plain_block,
        "before `</think>`",
        short=shapes.cut_off({"content": f"<think>\n{_THINKING_ALOUD}"}),
        prose_every=1,
        learned={"known": {}, "unknown": {"efforts": _EFFORTS, "reasons": True}},
    ),
    Vendor(
        "Qwen3 (vLLM)",
        "http://qwen.internal:8000/v1",
        "Qwen/Qwen3-32B",
        refusals.vllm(context=8192),
        shapes.own_field,
        shapes.bold_block,
        "in `reasoning_content` or `reasoning`",
        short=shapes.cut_off({"content": None, "reasoning_content": _THINKING_ALOUD}),
        learned={
            "known": {"context": 8192},
            "unknown": {"context": 8192, "logprobs": False, "efforts": _EFFORTS, "reasons": True},
        },
    ),
    Vendor(
        "gpt-oss (Ollama)",
        "http://ollama.internal:11434/v1",
        "gpt-oss:20b",
        refusals.ollama,
        shapes.harmony,
        shapes.plain_block,
        "in Harmony channels",
        short=shapes.cut_off({"content": f"<|channel|>analysis<|message|>{_THINKING_ALOUD}"}),
        prose_every=4,
        learned={"known": {}, "unknown": {"efforts": ["none", *_EFFORTS], "reasons": True}},
    ),
)


class VendorEndpoint(StubEndpoint):
    """A proxy that answers for one vendor's address, and refuses another address or a wrong key."""

    def __init__(self, vendor: Vendor, naming: Naming) -> None:
        super().__init__(answer_of(vendor))
        self._address = urlsplit(vendor.base_url(naming))

    @property
    def proxy(self) -> str:
        return self.base_url.removesuffix("/v1")

    async def _reply(self, request: web.Request, body: Body) -> web.Response:
        url, wanted = request.url, self._address
        asked = (url.host, url.port, url.path, url.query_string)
        if asked != (wanted.hostname, wanted.port or 80, f"{wanted.path}/chat/completions", wanted.query):
            error = {"code": "404", "message": f"Resource not found: {url}"}
            return web.json_response({"error": error}, status=404)
        key = {"api-key": KEY} if wanted.query else {"Authorization": f"Bearer {KEY}"}
        if any(request.headers.get(name) != value for name, value in key.items()):
            return web.json_response({"error": {"message": "Incorrect API key provided"}}, status=401)
        reply = self.answer(body)
        return web.Response(body=reply.raw or b"", status=reply.status, content_type="application/json")


@contextmanager
def vendor_endpoint(vendor: Vendor, naming: Naming) -> Iterator[VendorEndpoint]:
    """The vendor's endpoint, and settings and environment that lead there."""
    with VendorEndpoint(vendor, naming) as endpoint:
        proxies = {"http_proxy": endpoint.proxy, "HTTP_PROXY": "", "no_proxy": "", "NO_PROXY": ""}
        with (
            patch.dict(os.environ, proxies),
            override_settings(
                OPENAI_BASE_URL=vendor.base_url(naming),
                OPENAI_API_KEY=KEY,
                LACE_REASONING_MODEL=vendor.model_name(naming),
                LACE_FORMATTER_MODEL="",
                LACE_PRICES="",
                LACE_MAX_IN_FLIGHT=IN_FLIGHT,
            ),
        ):
            yield endpoint


def leaked(seen: Sequence[SeenRequest]) -> bool:
    """Whether a thought of one request came back in another."""
    return any(THOUGHT in conversation(request.body) for request in seen)
