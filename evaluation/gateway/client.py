"""Sends one HTTP request to a model endpoint and names its outcome."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

import aiohttp
import httpx2

from common.addresses import AddressRefused
from common.tracing import span
from evaluation.gateway.addresses import guarded_session
from evaluation.gateway.endpoints import CONNECT_TIMEOUT, MAX_REPLY_BYTES, Endpoint
from evaluation.gateway.replies import Outcome, read_reply

_UNREACHABLE = "the endpoint cannot be reached or broke off"
COMPLETIONS = "/chat/completions"


class Reader(Protocol):
    """Reads a reply into its outcome, like `read_reply`."""

    def __call__(
        self, *, status: int, headers: Mapping[str, str], content: bytes, secret: str = ""
    ) -> Outcome: ...


class _ReplyTooBig(Exception):
    """The reply exceeds the size limit."""


class _ReplyCompressed(Exception):
    """The endpoint compressed its reply against our request; decompressing it could exhaust the memory."""


# No connection was made: a refused one, an unknown host name, a failed TLS handshake, a connect time-out.
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
NO_REPLY = (
    *(_ReplyTooBig, _ReplyCompressed),
    *(httpx2.HTTPError, httpx2.InvalidURL, aiohttp.ClientError, OSError),
)


class _CappedStream(httpx2.AsyncByteStream):
    """A reply's body that raises an error at the size limit."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > MAX_REPLY_BYTES:
                raise _ReplyTooBig
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _cap_reply(response: httpx2.Response) -> None:
    """Set the size limit before anything is read; the SDK reads the bodies of errors as well."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise _ReplyCompressed
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _CappedStream(response.stream)


class EndpointClient:
    """Sends requests to one endpoint. Use as `async with`, inside the coroutine that sends.

    `max_connections` limits the open connections. `locate` returns the current base URL (embedded model). It
    is called again, in a thread, after a failed connection, so that the next attempt finds a restarted
    server.
    """

    def __init__(
        self, endpoint: Endpoint, *, max_connections: int = 1000, locate: Callable[[], str] | None = None
    ) -> None:
        self.endpoint = endpoint
        self._max_connections = max_connections
        self._locate = locate
        self._http: httpx2.AsyncClient | None = None
        self._base_url = ""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._headers = httpx2.Headers(headers | endpoint.headers)

    async def __aenter__(self) -> Self:
        # The SDK's transport is bound to the running loop, so it is made here and not in __init__.
        base_url = self.endpoint.base_url
        if not base_url and self._locate:
            base_url = await asyncio.to_thread(self._locate)
        self._aim(base_url)
        self._http = self._client()
        return self

    def _client(self) -> httpx2.AsyncClient:
        from openai import DefaultAioHttpClient  # here: takes a second, and pages never call a model

        guard, transport = self.endpoint.guard, None
        if guard is not None:
            from openai._vendor.httpx_aiohttp import AiohttpTransport

            transport = AiohttpTransport(trust_env=False)
            transport.client = partial(
                guarded_session, guard, limit=self._max_connections, ssl=transport.ssl_context
            )
        return DefaultAioHttpClient(
            follow_redirects=False,
            # A proxy from the environment cannot reach loopback, and would resolve a guarded host itself.
            trust_env=not self.endpoint.embedded and guard is None,
            limits=httpx2.Limits(max_connections=self._max_connections),
            event_hooks={"response": [_cap_reply]},
            transport=transport,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def send(
        self, body: dict[str, Any], *, timeout: float, path: str = COMPLETIONS, read: Reader = read_reply
    ) -> Outcome:
        """Send one request (JSON body of `path` at the endpoint) and return its outcome, as `read` reads it.

        Sends exactly one HTTP request. `timeout` limits the whole exchange, in seconds. No reply raises an
        error; cancelling the task does.
        """
        started = time.perf_counter()
        outcome = await self._exchange(body, timeout, path, read)
        latency = round((time.perf_counter() - started) * 1000)
        if outcome.kind == "connection" and self._locate is not None:
            await self._find_again(self._locate)
        return replace(outcome, latency_ms=latency)

    async def _exchange(self, body: dict[str, Any], timeout: float, path: str, read: Reader) -> Outcome:
        try:
            async with asyncio.timeout(timeout):
                response = await self._post(body, timeout, path)
        except NO_REPLY as error:
            return no_reply(error, timeout)
        return read(
            status=response.status_code,
            headers=response.headers,
            content=response.content,
            secret=self.endpoint.api_key,
        )

    async def _post(self, body: dict[str, Any], timeout: float, path: str) -> httpx2.Response:
        # Uses the transport directly: the SDK's work around a request takes as long as the request itself,
        # and every status is read here.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        return await self.request("POST", path, timeout=timeout, content=content)

    async def request(
        self, method: str, path: str, *, timeout: float, content: bytes | None = None
    ) -> httpx2.Response:
        """Return the endpoint's reply as it is; raises what the transport raises (see `no_reply`)."""
        if self._http is None:
            raise RuntimeError("EndpointClient is used outside its `async with` block")
        request = httpx2.Request(
            method,
            httpx2.URL(self.endpoint.url(path, base_url=self._base_url)),
            headers=self._headers,
            content=content,
            extensions={"timeout": httpx2.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT)).as_dict()},
        )
        with span(f"{method} {path}", "client", http_request_method=method, url_path=path) as add:
            response = await self._http.send(request)
            add(server_address=request.url.host, http_response_status_code=response.status_code)
            return response

    def _aim(self, base_url: str) -> None:
        self._base_url = base_url.rstrip("/")

    async def _find_again(self, locate: Callable[[], str]) -> None:
        try:
            self._aim(await asyncio.to_thread(locate))
        except (RuntimeError, OSError):
            return  # the outcome already says that the endpoint cannot be reached


def no_reply(error: BaseException, timeout: float) -> Outcome:
    """Return the outcome of a request whose reply never came, or is not read."""
    if isinstance(error, _ReplyTooBig):
        return Outcome(kind="too_big", status=None, error=f"the reply is over {MAX_REPLY_BYTES:,} bytes")
    if (refused := _cause(error, AddressRefused)) is not None:
        return Outcome(kind="redirect", status=None, error=f"not connected: {refused}", sent=False)
    if isinstance(error, _ReplyCompressed):
        return Outcome(kind="not_json", status=None, error="the reply is compressed, which was not asked for")
    if (unsent := _cause(error, _NEVER_SENT)) is not None:
        slow = isinstance(unsent, TimeoutError)
        words = f"no connection within {min(timeout, CONNECT_TIMEOUT):g} seconds" if slow else _UNREACHABLE
        return Outcome(kind="connection", status=None, error=words, sent=False)
    if _cause(error, TimeoutError):
        return Outcome(kind="timeout", status=None, error=f"no answer within {timeout:g} seconds")
    return Outcome(kind="connection", status=None, error=_UNREACHABLE)


def _cause(
    error: BaseException, kinds: type[BaseException] | tuple[type[BaseException], ...]
) -> BaseException | None:
    """Return the cause of one of these kinds. The SDK's class cannot tell: it calls a refusal a timeout."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kinds):
        cause = cause.__cause__
    return cause
