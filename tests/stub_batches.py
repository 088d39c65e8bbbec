"""The stub endpoint with a Batch API: files and batches over real HTTP, answered by the same `answer`."""

import itertools
import json
import time
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.stub_endpoint import Answer, StubEndpoint, _completion


@dataclass
class StubBatch:
    """One batch; `answered` requests of its file are worked off when it ends."""

    id: str
    file: str
    metadata: dict[str, str]
    created_at: float
    polls: int = 0
    status: str = "validating"
    output: str | None = None
    errors: str | None = None
    code: str = ""


@dataclass
class StubFile:
    id: str
    name: str
    content: bytes
    created_at: float


@dataclass
class Behaviour:
    """How the Batch API behaves; may be changed on the way.

    `polls` is how often a batch is looked at before it ends as `ends`. Of a batch that does not complete only
    the first `answered` requests are. `lose` names steps ("upload", "create") whose reply is lost, once each.
    `skip_lines`: keys' positions that no file tells of.
    """

    has_api: bool = True
    polls: int = 1
    ends: str = "completed"
    answered: int = 1_000_000
    code: str = "token_limit_exceeded"
    lose: list[str] = field(default_factory=list)
    fail: int = 0
    skip_lines: set[int] = field(default_factory=set)


class StubBatches(StubEndpoint):
    """A stub endpoint that also speaks /v1/files and /v1/batches. Answers to lines are those of `answer`."""

    def __init__(self, answer: Answer, behaviour: Behaviour | None = None) -> None:
        super().__init__(answer)
        self.behaviour = behaviour or Behaviour()
        self.files: dict[str, StubFile] = {}
        self.batches: dict[str, StubBatch] = {}
        self.steps: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self._numbers = itertools.count(1)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Every request line of every file that a batch was made of."""
        return [line for batch in self.batches.values() for line in self._requests(batch)]

    async def _handle(self, request: web.Request) -> web.Response:
        if not request.path.startswith(("/v1/files", "/v1/batches")):
            return await super()._handle(request)
        try:
            return await self._batch_api(request)
        except Exception as error:
            self._error = self._error or error
            raise

    async def _batch_api(self, request: web.Request) -> web.Response:
        behaviour = self.behaviour
        if not behaviour.has_api:
            return web.json_response({"error": {"message": "no such path"}}, status=404)
        if behaviour.fail > 0:
            behaviour.fail -= 1
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        step, reply = await self._step(request)
        self.steps.append(step)
        if step in behaviour.lose:
            behaviour.lose.remove(step)
            assert request.transport is not None
            request.transport.abort()
        return reply

    async def _step(self, request: web.Request) -> tuple[str, web.Response]:
        parts = request.path.removeprefix("/v1/").split("/")
        match (request.method, *parts):
            case ("POST", "files"):
                return "upload", web.json_response(_file_json(await self._upload(request)))
            case ("GET", "files"):
                return "list files", _page(request, [_file_json(f) for f in self.files.values()])
            case ("GET", "files", file_id, "content"):
                return "download", web.Response(body=self.files[file_id].content)
            case ("POST", "batches"):
                return "create", web.json_response(_batch_json(self._create(await request.json())))
            case ("GET", "batches"):
                return "list batches", _page(request, [_batch_json(b) for b in self.batches.values()])
            case ("GET", "batches", batch_id):
                return "look", web.json_response(_batch_json(self._look(self.batches[batch_id])))
            case ("POST", "batches", batch_id, "cancel"):
                return "cancel", self._cancel(self.batches[batch_id])
        return "unknown", web.json_response({"error": {"message": "no such path"}}, status=404)

    async def _upload(self, request: web.Request) -> StubFile:
        form = await request.post()
        upload = form["file"]
        assert form["purpose"] == "batch"
        assert isinstance(upload, web.FileField)
        return self._keep(upload.filename, upload.file.read())

    def _keep(self, name: str, content: bytes) -> StubFile:
        file = StubFile(f"file-{next(self._numbers)}", name, content, time.time())
        self.files[file.id] = file
        return file

    def _create(self, body: dict[str, Any]) -> StubBatch:
        assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
        number = next(self._numbers)
        batch = StubBatch(f"batch_{number}", body["input_file_id"], body["metadata"], time.time())
        lines = self._requests(batch)
        assert len({line["body"]["model"] for line in lines}) == 1, "a batch asks one model"
        assert len({line["custom_id"] for line in lines}) == len(lines), "a batch asks nothing twice"
        self.batches[batch.id] = batch
        return batch

    def _look(self, batch: StubBatch) -> StubBatch:
        batch.polls += 1
        if batch.status == "cancelling":
            self._end(batch, "cancelled")
        elif batch.status in ("validating", "in_progress"):
            batch.status = "in_progress"
            if batch.polls >= self.behaviour.polls:
                self._end(batch, self.behaviour.ends)
        return batch

    def _cancel(self, batch: StubBatch) -> web.Response:
        if batch.status not in ("validating", "in_progress"):
            return web.json_response({"error": {"message": "it is over"}}, status=409)
        batch.status = "cancelling"
        return web.json_response(_batch_json(batch))

    def _end(self, batch: StubBatch, status: str) -> None:
        batch.status = status
        if status == "failed":
            batch.code = self.behaviour.code
            return
        output: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        most = len(self._requests(batch)) if status == "completed" else self.behaviour.answered
        for number, line in enumerate(self._requests(batch)):
            if number in self.behaviour.skip_lines:
                continue
            if number >= most:
                if status == "expired":
                    failure = {"code": "batch_expired", "message": "not in time"}
                    errors.append({"custom_id": line["custom_id"], "response": None, "error": failure})
                continue
            reply = self._line(line)
            (output if reply["response"]["status_code"] == 200 else errors).append(reply)
        batch.output = self._keep("output.jsonl", _jsonl(output)).id if output else None
        batch.errors = self._keep("errors.jsonl", _jsonl(errors)).id if errors else None

    def _line(self, line: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(line)
        reply = self.answer(line["body"])
        content = _completion(line["body"], reply) if reply.raw is None else reply.raw
        response = {"status_code": reply.status, "request_id": "req-1", "body": json.loads(content)}
        return {"id": "batch_req", "custom_id": line["custom_id"], "response": response, "error": None}

    def _requests(self, batch: StubBatch) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.files[batch.file].content.splitlines()]


def _jsonl(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _page(request: web.Request, rows: list[dict[str, Any]]) -> web.Response:
    """Newest first, in pages."""
    rows, after, limit = rows[::-1], request.query.get("after"), int(request.query["limit"])
    if after:
        rows = rows[[row["id"] for row in rows].index(after) + 1 :]
    return web.json_response({"object": "list", "data": rows[:limit], "has_more": len(rows) > limit})


def _file_json(file: StubFile) -> dict[str, Any]:
    return {"id": file.id, "object": "file", "filename": file.name, "created_at": int(file.created_at)}


def _batch_json(batch: StubBatch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "object": "batch",
        "status": batch.status,
        "metadata": batch.metadata,
        "input_file_id": batch.file,
        "output_file_id": batch.output,
        "error_file_id": batch.errors,
        "errors": {"data": [{"code": batch.code, "message": "In case c1: …"}]} if batch.code else None,
        "created_at": int(batch.created_at),
    }
