"""The HTTP side of the generated operations: the token, retries, and errors in words."""

import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Self

import httpx

from lace_client.errors import Unreachable, error_of

LONGEST_WAIT = 60.0  # seconds, whatever Retry-After says
# An answer with one of these was not acted on, so any request may be sent again.
_NOT_DONE = (429, 503)
_SAFE = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE")
# POST that changes nothing when it is repeated with the same body.
_REPEATABLE = ("/sets/", "/prompts/", "/lint/", "/estimate/")


class Retries(httpx.BaseTransport):
    """Sends a request again after 429, 5xx and broken connections, as Retry-After says, else ever later.

    A POST that may have been acted on is sent again only if the workbench recognises it: by its
    Idempotency-Key, its `client_id`, or because repeating it changes nothing.
    """

    def __init__(
        self,
        inner: httpx.BaseTransport,
        *,
        attempts: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner, self._attempts, self._sleep = inner, attempts, sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer. Raises WorkbenchError for one that is no success."""
        request.read()
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            try:
                response = self._inner.handle_request(request)
            except httpx.TransportError as error:
                if last or not (_repeatable(request) or isinstance(error, httpx.ConnectError)):
                    where = f"{request.url.scheme}://{request.url.netloc.decode()}"
                    raise Unreachable(
                        f"{where} cannot be reached: {error or type(error).__name__}"
                    ) from error
                self._sleep(_pause(attempt, {}))
                continue
            response.request = request
            if response.is_success and _is_json(response):
                return response
            response.read()
            if last or not _again(request, response):
                raise error_of(response)
            response.close()
            self._sleep(_pause(attempt, response.headers))
        raise AssertionError("every attempt returns or raises")

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


def _is_json(response: httpx.Response) -> bool:
    return str(response.headers.get("content-type", "")).startswith("application/json")


def _again(request: httpx.Request, response: httpx.Response) -> bool:
    status = response.status_code
    if status == 409:  # the first request with this Idempotency-Key is still at work
        return b'"in_progress"' in response.content
    return status in _NOT_DONE or (status >= 500 and _repeatable(request))


def _repeatable(request: httpx.Request) -> bool:
    if request.method in _SAFE or "idempotency-key" in request.headers:
        return True
    return b'"client_id"' in request.content or request.url.path.endswith(_REPEATABLE)


def _pause(attempt: int, headers: Mapping[str, str]) -> float:
    """Return the seconds until the next attempt."""
    asked = _seconds(headers.get("retry-after", ""))
    if asked is not None:
        return min(max(asked, 0.0), LONGEST_WAIT)
    # Half of it by chance: jobs that failed together do not come back together.
    return min(float(2 ** (attempt - 1)), LONGEST_WAIT) * (0.5 + random.random() / 2)  # noqa: S311


def _seconds(value: str) -> float | None:
    """Return the seconds that a Retry-After header asks for: a number, or a date."""
    if value.strip().isdecimal():
        return float(value)
    try:
        return (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return None


class Client:
    """What the generated operations send their requests with."""

    raise_on_unexpected_status = False  # the callers name what they expect

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        attempts: int = 6,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Create a client.

        Parameters
        ----------
        base_url : of the workbench, such as https://lace.example.org.
        timeout : seconds until a connection or an answer counts as broken.
        attempts : of each request, the first included.
        transport, sleep : for tests.
        """
        inner = transport or httpx.HTTPTransport()
        self._client = httpx.Client(
            base_url=base_url,
            headers=dict(headers or {}),
            timeout=timeout,
            transport=Retries(inner, attempts=attempts, sleep=sleep),
        )

    def get_httpx_client(self) -> httpx.Client:
        """Return the connection."""
        return self._client

    def get_async_httpx_client(self) -> httpx.AsyncClient:
        """Refuse: retries and errors in words are for the synchronous functions."""
        raise NotImplementedError("use sync or sync_detailed")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AuthenticatedClient(Client):
    """A client with an API token."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float = 60.0,
        attempts: int = 6,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Create a client; `token` is one of the page API tokens. Otherwise as `Client`."""
        super().__init__(
            base_url,
            headers={"Authorization": f"Token {token}"},
            timeout=timeout,
            attempts=attempts,
            transport=transport,
            sleep=sleep,
        )
