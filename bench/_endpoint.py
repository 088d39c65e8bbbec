"""A model endpoint in a process of its own: fixed latency, a rate limit, planned failures, counts."""

import argparse
import asyncio
import http.client
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

Json = dict[str, Any]
FOLDER = Path(__file__).resolve().parent
MODEL = "bench-model"
COUNTED = ("repeated", "answered", "paid_again", "limited", "broken", "most_in_flight")

_FENCE = re.compile(r"^<<.*$", re.MULTILINE)
_ASKED = re.compile(r"^(?:- )?([\w.-]+): (?:TRUE|FALSE)\b", re.MULTILINE)
_ADVOCATE = "Answers to argue for"
_WEB_PAGE = b"<!doctype html><h1>Bad gateway</h1>"


@dataclass(frozen=True)
class Server:
    """A running endpoint, as its caller sees it."""

    base_url: str
    pid: int

    def counts(self) -> Json:
        """requests, repeated (body seen before), answered, paid_again (answered before), limited, broken,
        most_in_flight, span (s).
        """
        return self._control("GET", "/counts")

    def times(self) -> list[float]:
        """When each request arrived (Unix seconds), in order."""
        return list(self._control("GET", "/times")["times"])

    def set(self, **options: Any) -> None:
        """From the next request on: another latency, rate, burst or script; reset=True forgets the counts."""
        self._control("POST", "/set", json.dumps(options))

    def _control(self, method: str, path: str, body: str | None = None) -> Json:
        line = http.client.HTTPConnection(urlsplit(self.base_url).netloc, timeout=60)
        try:
            line.request(method, path, body=body)
            answer: Json = json.loads(line.getresponse().read())
            return answer
        finally:
            line.close()


@contextmanager
def endpoint(
    *, latency: float = 0.2, rate: float = 0.0, burst: float = 1.0, script: Sequence[Json] = ()
) -> Iterator[Server]:
    """Run the endpoint as long as the block lasts (it ends with its caller, however that ends).

    `latency` in seconds. `rate` requests a second are answered (0: no limit), `burst` at once; more get 429
    with Retry-After. `script` is gone through in order and from the start again, one step a request:
    {} a good answer; {"status": 500}, {"status": 429, "retry_after": 2}; {"body": one of "html", "empty",
    "truncated", "refusal", "length", "unmarked", "big"}; {"hang": true}; {"close": true}; each may have a
    "latency" of its own.
    """
    options = {"latency": latency, "rate": rate, "burst": burst, "script": list(script)}
    command = [sys.executable, "-m", "bench._endpoint", json.dumps(options)]
    process = subprocess.Popen(
        command, cwd=FOLDER.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Server(process.stdout.readline().strip(), process.pid)
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@dataclass
class Stub:
    """What the process knows."""

    latency: float = 0.2
    rate: float = 0.0
    burst: float = 1.0
    script: list[Json] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    last: float = 0.0
    seen: set[int] = field(default_factory=set)
    paid: set[int] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    in_flight: int = 0
    due: float = 0.0

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request: a completion, or a question about the process."""
        body = await request.read()
        if request.path.endswith("/chat/completions"):
            return await self._complete(request, body)
        if request.path == "/set":
            return self._set(json.loads(body))
        if request.path == "/times":
            return web.json_response({"times": self.arrived})
        zeros = dict.fromkeys(COUNTED, 0)
        span = self.last - self.arrived[0] if self.arrived else 0.0
        return web.json_response({"requests": len(self.arrived), "span": span, **zeros, **self.counts})

    def _set(self, options: Json) -> web.Response:
        if options.pop("reset", False):
            self.arrived, self.seen, self.paid, self.counts = [], set(), set(), {}
        for name, value in options.items():
            setattr(self, name, value)
        return web.json_response({})

    async def _complete(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        number = len(self.arrived)
        self.arrived.append(time.time())
        if (wait := self._too_soon()) > 0:
            self.count("limited")
            return _failure(429, retry_after=wait)
        if (digest := hash(body)) in self.seen:
            self.count("repeated")
        self.seen.add(digest)
        self.in_flight += 1
        self.counts["most_in_flight"] = max(self.counts.get("most_in_flight", 0), self.in_flight)
        try:
            return await self._step(
                request, body, self.script[number % len(self.script)] if self.script else {}
            )
        finally:
            self.in_flight -= 1
            self.last = time.time()

    def _too_soon(self) -> float:
        """Seconds until the next request may come; 0 takes this one in (GCRA)."""
        if not self.rate:
            return 0.0
        now, between = time.monotonic(), 1 / self.rate
        due = max(self.due, now)
        if due - now > (self.burst - 1) * between + 1e-9:
            return due - now - (self.burst - 1) * between
        self.due = due + between
        return 0.0

    async def _step(self, request: web.BaseRequest, body: bytes, step: Json) -> web.StreamResponse:
        if step.get("hang"):
            self.count("broken")
            await asyncio.Event().wait()
        await asyncio.sleep(step.get("latency", self.latency))
        if step.get("close") and request.transport is not None:
            self.count("broken")
            request.transport.abort()
        status, kind = step.get("status", 200), step.get("body", "")
        if status != 200:
            self.count("limited" if status == 429 else "broken")
            return _failure(status, retry_after=step.get("retry_after"))
        good = kind not in ("html", "empty", "truncated", "big")
        self.count("answered" if good else "broken")
        if good and (digest := hash(body)) in self.paid:
            self.count("paid_again")
        elif good:
            self.paid.add(digest)
        return web.Response(body=reply(json.loads(body), kind), content_type="application/json")


def _failure(status: int, *, retry_after: float | None = None) -> web.Response:
    headers = {} if retry_after is None else {"Retry-After": str(math.ceil(retry_after))}
    error = {"error": {"message": "as planned", "type": "planned"}}
    return web.json_response(error, status=status, headers=headers)


def reply(body: Mapping[str, Any], kind: str) -> bytes:
    """The bytes of an answer of this kind, '' for a good one."""
    if kind in ("html", "empty", "big"):
        return {"html": _WEB_PAGE, "empty": b"", "big": b" " * 10_000_000}[kind]
    refusal = "I cannot help with that." if kind == "refusal" else None
    text = answer(body)
    if kind == "unmarked":
        text = text.split("VERDICTS")[0]
    data = {
        "id": "chatcmpl-bench",
        "model": body.get("model"),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None if refusal else text, "refusal": refusal},
                "finish_reason": "length" if kind == "length" else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": sum(len(message["content"]) for message in body["messages"]) // 4,
            "completion_tokens": len(text) // 4,
        },
    }
    content = json.dumps(data).encode()
    return content[: len(content) // 2] if kind == "truncated" else content


def answer(body: Mapping[str, Any]) -> str:
    """A rationale with a VERDICTS block for the criteria asked; a brief; or what a formatter returns."""
    end = _FENCE.split(body["messages"][-1]["content"])[-1]
    if (schema := (body.get("response_format") or {}).get("json_schema")) is not None:
        keys = schema["schema"]["properties"]["verdicts"]["properties"]
        entries = {key: {"explanation": "as it says", "value": "true"} for key in keys}
        return json.dumps({"verdicts": entries})
    if _ADVOCATE in end:
        return "The messages speak for the assigned answer: the customer was told what to expect."
    keys = dict.fromkeys(_ASKED.findall(end))
    lines = "\n".join(f"{key}: {'FALSE' if n % 2 else 'TRUE'}" for n, key in enumerate(keys))
    return f"The messages show what was asked and how it was met.\n\nVERDICTS\n{lines}"


async def serve(options: Json) -> None:
    """Say the address, then answer until standard input ends."""
    stub = Stub(**options)
    runner = web.ServerRunner(web.Server(stub.handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024, shutdown_timeout=0.1).start()
    host, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("options", nargs="?", default="{}", type=json.loads, help="JSON, see endpoint()")
    asyncio.run(serve(parser.parse_args().options))
