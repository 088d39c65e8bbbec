"""A real HTTP server on loopback that speaks /v1/chat/completions, for every test that reaches a model."""

import asyncio
import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Body = dict[str, Any]
Truth = Mapping[str, Mapping[str, bool | None]]

EMBEDDINGS = "/v1/embeddings"
MODELS = "/v1/models"

_CASE = re.compile(r"\bcase ([\w.-]*\w)")
_FENCE_LINE = re.compile(r"^<<.*$", re.MULTILINE)
_ASKED = re.compile(r"^(?:- )?([\w.-]+): (?:TRUE|FALSE)\b", re.MULTILINE)
_ADVOCATE = "Answers to argue for"


@dataclass(frozen=True)
class StubReply:
    """One reply. `raw` replaces the whole body; `hang` never answers; `close` drops the connection."""

    text: str | None = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    finish_reason: str | None = "stop"
    refusal: str | None = None
    raw: bytes | None = None
    hang: bool = False
    close: bool = False


@dataclass(frozen=True)
class SeenRequest:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Body


Answer = Callable[[Body], StubReply]


class StubEndpoint:
    """Use as `with StubEndpoint(answer) as endpoint:`; `answer` runs in the server's thread, one at a time.

    An exception of `answer` is raised again where the `with` block ends.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        # The vector of a text, or the reply to a request for vectors; None: the endpoint has no /embeddings.
        self.embed: Callable[[str], Sequence[float] | StubReply] | None = None
        # The names that /models lists, or the reply to it; None: the endpoint has no list.
        self.models: Sequence[str] | StubReply | None = None
        self.most_in_flight = 0
        self.base_url = ""
        self._in_flight = 0
        self._seen: list[SeenRequest] = []
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the stub endpoint did not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        if self._error is not None and error is None:
            raise self._error

    @property
    def seen(self) -> list[SeenRequest]:
        with self._lock:
            return list(self._seen)

    @property
    def requests(self) -> list[Body]:
        """The bodies received so far, in order, without requests for vectors."""
        return [request.body for request in self.seen if request.path not in (EMBEDDINGS, MODELS)]

    @property
    def embedded(self) -> list[str]:
        """The texts whose vectors were asked for, in order."""
        return [text for one in self.seen if one.path == EMBEDDINGS for text in one.body["input"]]

    @property
    def count(self) -> int:
        return len(self.seen)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=256 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        body: Body = json.loads(text) if text else {}
        with self._lock:
            self._seen.append(SeenRequest(request.path, dict(request.headers), body))
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            return await self._reply(request, body)
        finally:
            with self._lock:
                self._in_flight -= 1

    async def _reply(self, request: web.Request, body: Body) -> web.Response:
        if request.path == EMBEDDINGS and self.embed is not None:
            return _vectors(body, self.embed)
        if request.path == MODELS and self.models is not None:
            return _listed(self.models)
        if request.path != "/v1/chat/completions":
            return web.json_response({"error": {"message": "no such path", "type": "not_found"}}, status=404)
        try:
            reply = self.answer(body)
        except Exception as error:
            self._error = self._error or error
            raise
        if reply.hang:
            await asyncio.Event().wait()
        await asyncio.sleep(reply.delay)
        if reply.close and request.transport is not None:
            request.transport.abort()
        content = _completion(body, reply) if reply.raw is None else reply.raw
        headers = {"Content-Type": "application/json", **reply.headers}
        return web.Response(body=content, status=reply.status, headers=headers)


def _listed(models: Sequence[str] | StubReply) -> web.Response:
    if isinstance(models, StubReply):
        return web.Response(body=models.raw or b"", status=models.status, headers=models.headers)
    return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in models]})


def _vectors(body: Body, embed: Callable[[str], Sequence[float] | StubReply]) -> web.Response:
    made = [embed(text) for text in body["input"]]
    for reply in made:
        if isinstance(reply, StubReply):
            return web.Response(body=reply.raw or b"", status=reply.status, headers=reply.headers)
    rows = [{"index": n, "embedding": vector} for n, vector in enumerate(made)]
    tokens = sum(len(text) for text in body["input"]) // 4
    # Last first: the index counts, not the order.
    return web.json_response({"data": rows[::-1], "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})


def _completion(body: Body, reply: StubReply) -> bytes:
    prompt, completion = len(conversation(body)) // 4, len(reply.text or "") // 4
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    data = {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }
    return json.dumps(data).encode()


def fixed(text: str) -> Answer:
    """Answers that always say `text`."""
    return lambda body: StubReply(text)


def in_turn(*replies: StubReply) -> Answer:
    """Answers with each reply once, then with the last one for ever."""
    waiting = list(replies)
    return lambda body: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def planted_judge(truth: Truth, *, tpr: float, tnr: float, seed: int = 0, with_block: bool = True) -> Answer:
    """A judge whose errors are planted: right on a True with probability `tpr`, on a False with `tnr`.

    It finds `case <id>` in the chat and the criterion keys at the end of the last message, answers None with
    NOT_APPLICABLE, and depends on case, criterion and seed alone. Advocates get a brief, requests with a JSON
    schema get what their rationale says. Without `with_block` verdicts are in the prose only.
    """

    def answer(body: Body) -> StubReply:
        schema = asked_schema(body)
        if schema is not None:
            return StubReply(json.dumps(fitting(schema, fenced_text(body))))
        case = case_of(body, truth)
        if _ADVOCATE in asked_text(body):
            return StubReply(f"The chat of {case} speaks for the assigned answer.")
        verdicts = {
            key: planted_verdict(truth[case][key], case=case, criterion=key, tpr=tpr, tnr=tnr, seed=seed)
            for key in asked_keys(body)
        }
        return StubReply(_rationale(verdicts, with_block))

    return answer


def planted_verdict(
    truth: bool | None, *, case: str, criterion: str, tpr: float, tnr: float, seed: int = 0
) -> bool | None:
    """The planted judge's answer where the human answer is `truth`."""
    if truth is None:
        return None
    digest = hashlib.sha256(f"{seed}:{case}:{criterion}".encode()).digest()
    right = int.from_bytes(digest[:6], "big") / 2**48 < (tpr if truth else tnr)
    return truth if right else not truth


def _rationale(verdicts: Mapping[str, bool | None], with_block: bool) -> str:
    words = {True: "TRUE", False: "FALSE", None: "NOT_APPLICABLE"}
    prose = "\n".join(
        f"On {key} the messages lead me to say {words[value]}." for key, value in verdicts.items()
    )
    block = "\n".join(f"{key}: {words[value]}" for key, value in verdicts.items())
    return f"{prose}\n\nVERDICTS\n{block}" if with_block else prose


def conversation(body: Body) -> str:
    """All message texts of a request."""
    return "\n".join(str(message["content"]) for message in body.get("messages", []))


def asked_text(body: Body) -> str:
    """The last message's text after its last fence: the duty and the keys."""
    return _FENCE_LINE.split(str(body["messages"][-1]["content"]))[-1]


def fenced_text(body: Body) -> str:
    """The text in the last fence of the last message, or all of it when there is no fence."""
    parts = _FENCE_LINE.split(str(body["messages"][-1]["content"]))
    return parts[-2] if len(parts) > 2 else parts[0]


def asked_keys(body: Body) -> list[str]:
    """The criterion keys that the request asks for, in its order."""
    return list(dict.fromkeys(_ASKED.findall(asked_text(body))))


def case_of(body: Body, truth: Truth) -> str:
    """The case whose marker is in the chat; KeyError when there is none."""
    for found in _CASE.findall(conversation(body)):
        if found in truth:
            return str(found)
    raise KeyError(f"no `case <id>` of {len(truth)} cases in the request")


def asked_schema(body: Body) -> dict[str, Any] | None:
    """The JSON schema that the answer must follow, or None."""
    wanted = body.get("response_format") or {}
    schema = wanted.get("json_schema", {}).get("schema")
    return schema if isinstance(schema, dict) else None


def fitting(schema: Mapping[str, Any], text: str, key: str = "") -> Any:
    """A value that fits the schema; an enum takes what `text` concludes on the key it belongs to."""
    if "enum" in schema:
        word = _concluded(text, key)
        return word if word in schema["enum"] else schema["enum"][-1]
    if schema.get("type") == "object":
        parts = schema.get("properties", {}).items()
        inner = ("value", "explanation")
        return {name: fitting(part, text, key if name in inner else name) for name, part in parts}
    if schema.get("type") == "array":
        return []
    return {"boolean": False, "integer": 0, "number": 0.0}.get(str(schema.get("type")), "as the text says")


def _concluded(text: str, key: str) -> str:
    pattern = rf"\b{re.escape(key)}\b[^\n]*?\b(true|false|not[ _]applicable)\b"
    found = re.findall(pattern, text, re.IGNORECASE)
    return str(found[-1]).lower().replace(" ", "_") if found else "unclear"
