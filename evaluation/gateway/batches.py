"""An endpoint's Batch API: a file of requests now, files of answers within a day, at half the price."""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

import httpx2

from evaluation.gateway.addresses import guarded_transport
from evaluation.gateway.endpoints import CONNECT_TIMEOUT, MAX_REPLY_BYTES, Endpoint
from evaluation.gateway.replies import Outcome, read_reply
from evaluation.gateway.throttle import EndpointDown

# OpenAI's limits of one file, which may ask one model only (developers.openai.com/api/docs/guides/batch).
MOST_REQUESTS = 50_000
MOST_BYTES = 100_000_000
COMPLETIONS = "/v1/chat/completions"
# The endpoint keeps a batch for a day, and may report its end later.
WINDOW = timedelta(hours=25)
# The metadata key for our name of a batch.
METADATA = "workbench_batch"

_PAGE, _MOST_PAGES = 100, 50
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_]{1,63}")
_KEY = re.compile(rb'"custom_id"\s*:\s*"([^"\\]{1,100})"')
_ENDED = {"completed", "expired", "cancelled"}
_WORKING = {"validating", "in_progress", "finalizing", "cancelling"}

State = Literal["working", "completed", "expired", "cancelled", "failed"]


class BatchGone(EndpointDown):
    """The endpoint no longer knows this batch or file, or has no Batch API."""


class BatchRefused(EndpointDown):
    """The endpoint refuses an operation, such as cancelling a finished batch."""


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """Progress of a batch. `error` names why it failed; `output` and `errors` are file ids or ""."""

    id: str
    state: State
    output: str = ""
    errors: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One line of a batch's files: the request's key and its outcome; None if it was never asked."""

    key: str
    outcome: Outcome | None


class BatchClient:
    """The files and batches of one endpoint. Use as `with`. Every method can raise EndpointDown.

    Redirects are not followed and replies are capped. Errors contain neither the key nor the endpoint's
    words. `timeout` limits each wait for the endpoint, in seconds.
    """

    def __init__(self, endpoint: Endpoint, *, timeout: float) -> None:
        self._endpoint = endpoint
        headers = {"Accept-Encoding": "identity"} | endpoint.headers
        self._http = httpx2.Client(
            base_url=endpoint.base_url,
            headers=headers,
            params=httpx2.QueryParams(endpoint.query),
            timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT)),
            follow_redirects=False,
            transport=guarded_transport(endpoint.guard) if endpoint.guard else None,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def upload(self, name: str, file: BinaryIO) -> str:
        """Upload a file of requests; return its id."""
        files = {"file": (name, file, "application/jsonl")}
        data = self._json("POST", "/files", data={"purpose": "batch"}, files=files)
        return self._id(data)

    def find_file(self, name: str, *, since: datetime) -> str:
        """Return the id of a file of this name uploaded since then; "" without one."""
        for row in self._rows("/files", since=since, purpose="batch"):
            if row.get("filename") == name:
                return self._id(row)
        return ""

    def create(self, file_id: str, *, name: str) -> BatchStatus:
        """Create a batch from an uploaded file."""
        body = {
            "input_file_id": file_id,
            "endpoint": COMPLETIONS,
            "completion_window": "24h",
            "metadata": {METADATA: name},
        }
        return self._status(self._json("POST", "/batches", json=body))

    def find_batch(self, *, name: str, since: datetime) -> BatchStatus | None:
        """Return the batch created under our name since then; None without one."""
        for row in self._rows("/batches", since=since):
            if _dict(row.get("metadata")).get(METADATA) == name:
                return self._status(row)
        return None

    def look(self, batch_id: str) -> BatchStatus:
        """Return the status of a batch; raises BatchGone."""
        return self._status(self._json("GET", f"/batches/{batch_id}"))

    def cancel(self, batch_id: str) -> None:
        """Cancel the rest of a batch; its answers stay. A finished batch is ignored."""
        with contextlib.suppress(BatchGone, BatchRefused):
            self._json("POST", f"/batches/{batch_id}/cancel")

    def answers(self, file_id: str) -> Iterator[AnswerLine]:
        """Yield every line of a batch's output or error file that names its request, as it arrives."""
        try:
            with self._http.stream("GET", f"/files/{file_id}/content") as response:
                if response.status_code != 200:
                    raise self._refused(response, _capped(response))
                self._check_plain(response)
                for line, whole in _lines(response):
                    if (answer := self._answered(line, whole)) is not None:
                        yield answer
        except httpx2.HTTPError:
            raise self._down("the endpoint cannot be reached or broke off") from None

    def _answered(self, line: bytes, whole: bool) -> AnswerLine | None:
        if not whole:
            key = _KEY.search(line[:2000])
            error = f"the answer is over {MAX_REPLY_BYTES:,} bytes"
            too_big = Outcome(kind="too_big", status=None, error=error)
            return AnswerLine(key[1].decode(errors="replace"), too_big) if key else None
        data = _json_or_none(line)
        key = data.get("custom_id")
        if not isinstance(key, str):
            return None
        response, failure = _dict(data.get("response")), _dict(data.get("error"))
        status = response.get("status_code")
        if type(status) is int:
            return AnswerLine(key, self._outcome(status, response))
        if failure.get("code") in ("batch_expired", "batch_cancelled"):
            return AnswerLine(key, None)
        return AnswerLine(key, self._outcome(500, {"body": {"error": failure}}))

    def _outcome(self, status: int, response: Mapping[str, Any]) -> Outcome:
        request_id = response.get("request_id")
        return read_reply(
            status=status,
            headers={"x-request-id": request_id} if isinstance(request_id, str) else {},
            content=json.dumps(response.get("body")).encode(),
            secret=self._endpoint.api_key,
        )

    def _rows(self, path: str, *, since: datetime, **params: str) -> Iterator[dict[str, Any]]:
        """Yield the endpoint's list, newest first, back to `since`; nothing if it keeps no list."""
        after = ""
        for _ in range(_MOST_PAGES):
            query = params | {"limit": str(_PAGE)} | ({"after": after} if after else {})
            try:
                page = self._json("GET", path, params=query)
            except BatchGone:
                return
            rows = [row for row in page.get("data") or [] if isinstance(row, dict)]
            yield from rows
            oldest = rows[-1].get("created_at") if rows else None
            # One hour of tolerance for clock differences.
            if isinstance(oldest, int | float) and oldest < (since - timedelta(hours=1)).timestamp():
                return
            if not rows or page.get("has_more") is not True:
                return
            after = self._id(rows[-1])

    def _json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        try:
            with self._http.stream(method, path, **options) as response:
                content = _capped(response)
                if response.status_code != 200:
                    raise self._refused(response, content)
                self._check_plain(response)
        except httpx2.HTTPError:
            raise self._down("the endpoint cannot be reached or broke off") from None
        data = _json_or_none(content)
        if not data:
            raise self._down("the endpoint sent something other than a JSON object")
        return data

    def _refused(self, response: httpx2.Response, content: bytes) -> EndpointDown:
        outcome = read_reply(
            status=response.status_code,
            headers=response.headers,
            content=content,
            secret=self._endpoint.api_key,
        )
        if response.status_code in (404, 405, 501):
            words = f"HTTP {response.status_code}: the endpoint has no Batch API, or not this part of it"
            return BatchGone(f"{self._endpoint.id}: {words}", lasting=True)
        words = outcome.error or f"HTTP {response.status_code}"
        if outcome.kind in ("bad_request", "too_long"):
            return BatchRefused(f"{self._endpoint.id}: {words}", lasting=True)
        return self._down(words, lasting=outcome.kind in ("auth", "redirect"))

    def _check_plain(self, response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise self._down("the reply is compressed, which was not asked for")

    def _down(self, words: str, *, lasting: bool = False) -> EndpointDown:
        return EndpointDown(f"{self._endpoint.id}: {words}", lasting=lasting)

    def _status(self, data: Mapping[str, Any]) -> BatchStatus:
        word = data.get("status")
        if word not in _ENDED | _WORKING | {"failed"}:
            raise self._down("the endpoint sent a batch without a status")
        state: State = "working" if word in _WORKING else word
        return BatchStatus(
            id=self._id(data),
            state=state,
            output=_file(data.get("output_file_id")),
            errors=_file(data.get("error_file_id")),
            error=_reason(data.get("errors")) if state == "failed" else "",
        )

    def _id(self, data: Mapping[str, Any]) -> str:
        """Return an id that is safe in an address."""
        identifier = data.get("id")
        if not isinstance(identifier, str) or not _ID.fullmatch(identifier):
            raise self._down("the endpoint sent a file or batch without an id")
        return identifier


def request_line(key: str, body: Mapping[str, Any]) -> bytes:
    """Return one line of a file of requests."""
    line = {"custom_id": key, "method": "POST", "url": COMPLETIONS, "body": body}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"


def _capped(response: httpx2.Response) -> bytes:
    """Return the body up to the cap; more than that is no JSON that we requested."""
    content = bytearray()
    for chunk in response.iter_raw():
        content += chunk
        if len(content) > MAX_REPLY_BYTES:
            break
    return bytes(content)


def _lines(response: httpx2.Response) -> Iterator[tuple[bytes, bool]]:
    """Yield each line and whether it is complete; a line that is too long is cut."""
    line, too_long = bytearray(), False
    for chunk in response.iter_raw():
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line += piece[: 0 if too_long else None]
            yield bytes(line), not too_long and len(line) <= MAX_REPLY_BYTES
            line, too_long = bytearray(), False
        line += rest[: 0 if too_long else None]
        too_long = too_long or len(line) > MAX_REPLY_BYTES
    if line:
        yield bytes(line), not too_long


def _json_or_none(content: bytes) -> dict[str, Any]:
    """Return the object, empty if it is none."""
    try:
        return _dict(json.loads(content))
    except (ValueError, RecursionError):
        return {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _file(value: Any) -> str:
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def _reason(errors: Any) -> str:
    """Return why a batch failed, by its code: the endpoint's words could repeat a chat."""
    rows = _dict(errors).get("data")
    first = _dict(rows[0]) if isinstance(rows, list) and rows else {}
    code = first.get("code")
    return code if isinstance(code, str) and _TAG.fullmatch(code) else "no reason given"
