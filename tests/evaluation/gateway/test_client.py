"""One request to an endpoint: whatever comes back has a name, and exactly one request leaves."""

import asyncio
import gzip
import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.gateway import client
from evaluation.gateway.client import EndpointClient
from evaluation.gateway.endpoints import MAX_REPLY_BYTES, Endpoint, resolve_endpoint
from evaluation.gateway.rate_limit_headers import retry_after_seconds
from evaluation.gateway.replies import Outcome, read_reply
from tests.stub_endpoint import Answer, StubEndpoint, StubReply, fixed

KEY = "sk-canary-5f2d81"
CHAT = "my parcel of canaries never came"
BODY = {"model": "m", "messages": [{"role": "user", "content": CHAT}]}


def send(
    answer: Answer, *, timeout: float = 10, body: dict[str, Any] = BODY, requests: int = 1, key: str = KEY
) -> Outcome:
    """Send one request to a stub, check that one arrived and that nothing secret is in the outcome's line."""
    with StubEndpoint(answer) as stub:
        outcome = ask(resolve_endpoint(base_url=stub.base_url, api_key=key), timeout=timeout, body=body)
        assert stub.count == requests
    assert_clear_line(outcome)
    return outcome


def ask(endpoint: Endpoint, *, timeout: float = 10, body: dict[str, Any] = BODY) -> Outcome:
    async def once() -> Outcome:
        async with EndpointClient(endpoint) as opened:
            return await opened.send(body, timeout=timeout)

    return asyncio.run(once())


def assert_clear_line(outcome: Outcome) -> None:
    assert bool(outcome.error) == (outcome.kind != "answered")
    assert "\n" not in outcome.error
    assert KEY not in repr(asdict(outcome))
    assert CHAT not in outcome.error


def body_of(**choice: Any) -> bytes:
    return json.dumps({"choices": [choice]}).encode()


def error_body(message: str = "", **fields: Any) -> bytes:
    return json.dumps({"error": {"message": message or f"Incorrect key {KEY}: {CHAT}", **fields}}).encode()


def test_an_answer_keeps_text_tokens_and_request_id() -> None:
    outcome = send(lambda body: StubReply("It was late.", headers={"x-request-id": "req-7"}))
    assert (outcome.kind, outcome.status, outcome.text) == ("answered", 200, "It was late.")
    assert (outcome.finish_reason, outcome.request_id) == ("stop", "req-7")
    assert (outcome.prompt_tokens, outcome.cached_tokens, outcome.completion_tokens) == (8, 0, 3)


def test_the_request_carries_the_key_and_the_body_as_given() -> None:
    with StubEndpoint(fixed("yes")) as stub:
        ask(resolve_endpoint(base_url=stub.base_url, api_key=KEY))
        seen = stub.seen[0]
    assert seen.body == BODY
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert seen.headers["Accept-Encoding"] == "identity"


def test_an_endpoint_without_key_gets_no_key_even_when_the_environment_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    with StubEndpoint(fixed("yes")) as stub:
        outcome = ask(resolve_endpoint(base_url=stub.base_url, api_key=""))
        assert "Authorization" not in stub.seen[0].headers
        assert KEY not in repr(stub.seen)
    assert outcome.kind == "answered"


@pytest.mark.parametrize(
    ("status", "fields", "kind", "words"),
    [
        (401, {"code": "invalid_api_key"}, "auth", "invalid_api_key"),
        (403, {}, "auth", "API key"),
        (402, {}, "auth", "credit"),
        (429, {"code": "insufficient_quota"}, "auth", "credit"),
        (429, {"code": "rate_limit_exceeded"}, "rate_limited", "rate_limit_exceeded"),
        (500, {}, "server_error", "HTTP 500"),
        (503, {}, "server_error", "HTTP 503"),
        (504, {}, "timeout", "waiting"),
        (404, {"code": "model_not_found"}, "bad_request", "model_not_found"),
        (400, {"type": "invalid_request_error"}, "bad_request", "invalid_request_error"),
        (400, {"code": "context_length_exceeded"}, "too_long", "context"),
        (400, {"code": 400, "type": "exceed_context_size_error"}, "too_long", "context"),
        (400, {"message": "This model's maximum context length is 4096 tokens."}, "too_long", "context"),
        (413, {}, "too_long", "context"),
        (400, {"code": "content_filter"}, "refused", "filter"),
    ],
)
def test_every_error_status_has_a_name(status: int, fields: dict[str, Any], kind: str, words: str) -> None:
    outcome = send(lambda body: StubReply(status=status, raw=error_body(**fields)))
    assert (outcome.kind, outcome.status) == (kind, status)
    assert words in outcome.error


def test_a_rate_limit_says_how_long_to_wait() -> None:
    outcome = send(lambda body: StubReply(status=429, headers={"Retry-After": "7"}, raw=error_body()))
    assert (outcome.kind, outcome.retry_after) == ("rate_limited", 7.0)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with StubEndpoint(fixed("I am the canary")) as canary:
        elsewhere = {"Location": f"{canary.base_url}/chat/completions"}
        outcome = send(lambda body: StubReply(status=status, headers=elsewhere, raw=b""))
        assert canary.count == 0
    assert (outcome.kind, outcome.status) == ("redirect", status)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"<!doctype html><h1>502 Bad gateway</h1>", "not_json"),
        (b'{"choices": [{"message": {"content": "cut he', "not_json"),
        (b"\x00\x01\x02", "not_json"),
        (b"\xff\xfe\xff", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not_json"),
        (b'{"a": NaN}', "not_json"),
        (b'"just a string"', "not_json"),
        (b"[1, 2]", "not_json"),
        (b'{"choices": "many"}', "not_json"),
        (b'{"choices": [7]}', "not_json"),
        (b'{"choices": [{"message": "hello"}]}', "not_json"),
        (body_of(message={"content": ["a", 7]}), "not_json"),
        (b"", "empty"),
        (b"{}", "empty"),
        (b'{"choices": null}', "empty"),
        (b'{"choices": []}', "empty"),
        (body_of(message={"content": None}), "empty"),
        (body_of(message={"content": " \n"}), "empty"),
        (body_of(message={}), "empty"),
        (body_of(message={"content": "half an answ"}, finish_reason="length"), "cut_off"),
        (body_of(message={"content": None}, finish_reason="length"), "cut_off"),
        (body_of(message={"content": ""}, finish_reason="content_filter"), "refused"),
        (body_of(message={"content": None, "refusal": "I cannot help."}, finish_reason="stop"), "refused"),
        (body_of(message={"content": "par"}, finish_reason="error"), "server_error"),
        (error_body(code=429), "rate_limited"),
        (error_body(code="upstream_failed"), "server_error"),
    ],
)
def test_every_strange_reply_with_status_200_has_a_name(raw: bytes, kind: str) -> None:
    assert send(lambda body: StubReply(raw=raw)).kind == kind


def test_a_cut_answer_and_a_refusal_keep_their_text() -> None:
    assert send(lambda body: StubReply("half an answ", finish_reason="length")).text == "half an answ"
    assert send(lambda body: StubReply(None, refusal="I cannot help.")).text == "I cannot help."


def test_characters_that_no_database_stores_are_replaced() -> None:
    outcome = send(lambda body: StubReply(raw=body_of(message={"content": "a\x00b\ud800c"})))
    assert (outcome.kind, outcome.text) == ("answered", "a\ufffdb\ufffdc")


@pytest.mark.parametrize("status", [200, 500])
def test_a_reply_of_10_megabytes_is_cut_off_while_reading(status: int) -> None:
    outcome = send(lambda body: StubReply(status=status, raw=b"x" * 10_000_000))
    assert outcome.kind == "too_big"


def test_a_reply_just_under_the_cap_is_read() -> None:
    text = "a" * (MAX_REPLY_BYTES - 1000)
    assert send(fixed(text)).text == text


def test_a_compressed_reply_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    outcome = send(lambda body: StubReply(raw=bomb, headers={"Content-Encoding": "gzip"}))
    assert outcome.kind == "not_json"
    assert len(bomb) < MAX_REPLY_BYTES


def test_an_endpoint_that_hangs_ends_in_a_timeout() -> None:
    outcome = send(lambda body: StubReply(hang=True), timeout=0.3)
    assert (outcome.kind, outcome.status) == ("timeout", None)
    assert 250 <= outcome.latency_ms < 5000


def test_a_dropped_connection_is_not_called_a_timeout() -> None:
    assert send(lambda body: StubReply(close=True)).kind == "connection"


def test_a_refused_connection_is_not_called_a_timeout() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, never listening
        port = closed.getsockname()[1]
        outcome = ask(resolve_endpoint(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY))
    assert (outcome.kind, outcome.status, outcome.sent) == ("connection", None, False)
    assert_clear_line(outcome)


def test_an_unknown_host_name_is_a_request_that_never_left() -> None:
    outcome = ask(resolve_endpoint(base_url="https://nowhere.invalid/v1", api_key=KEY))
    assert (outcome.kind, outcome.sent) == ("connection", False)
    assert_clear_line(outcome)


def test_a_connection_that_is_never_made_is_a_request_that_never_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "CONNECT_TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        for _ in range(3):  # more than its backlog: the kernel drops further connections
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        base_url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        outcome = ask(resolve_endpoint(base_url=base_url, api_key=KEY))
    assert (outcome.kind, outcome.sent) == ("connection", False)
    assert outcome.error == "no connection within 0.3 seconds"


@pytest.mark.parametrize(
    "reply",
    [
        StubReply(close=True),
        StubReply(hang=True),
        StubReply(raw=b"x" * (MAX_REPLY_BYTES + 1)),
        StubReply(raw=b"", headers={"Content-Encoding": "gzip"}),
    ],
)
def test_a_request_that_breaks_later_has_left(reply: StubReply) -> None:
    assert send(lambda body: reply, timeout=0.5).sent


@contextmanager
def raw_server(reply: bytes) -> Iterator[str]:
    """A server that answers every connection with these bytes, and closes."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        thread.join(10)


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
    ],
)
def test_a_server_that_speaks_no_proper_http_is_a_connection_failure(reply: bytes) -> None:
    with raw_server(reply) as base_url:
        outcome = ask(resolve_endpoint(base_url=base_url, api_key=KEY))
    assert (outcome.kind, outcome.sent) == ("connection", True)
    assert_clear_line(outcome)


def test_the_key_is_in_no_log_line_and_no_representation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with StubEndpoint(lambda body: StubReply(status=401, raw=error_body(code=KEY))) as stub:
        endpoint = resolve_endpoint(base_url=stub.base_url, api_key=KEY)
        outcome = ask(endpoint)
    assert caplog.records
    assert KEY not in caplog.text
    assert KEY not in repr(endpoint) + repr(EndpointClient(endpoint)) + repr(outcome)


def test_cancelling_a_request_cancels_it() -> None:
    async def cancelled(base_url: str) -> None:
        async with EndpointClient(resolve_endpoint(base_url=base_url, api_key="")) as opened:
            task = asyncio.create_task(opened.send(BODY, timeout=60))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with StubEndpoint(lambda body: StubReply(hang=True)) as stub:
        asyncio.run(cancelled(stub.base_url))


def test_requests_of_one_client_run_at_the_same_time() -> None:
    async def many(base_url: str) -> list[Outcome]:
        async with EndpointClient(resolve_endpoint(base_url=base_url, api_key="")) as opened:
            return await asyncio.gather(*(opened.send(BODY, timeout=30) for _ in range(128)))

    with StubEndpoint(lambda body: StubReply("yes", delay=0.5)) as stub:
        outcomes = asyncio.run(many(stub.base_url))
        assert (stub.count, stub.most_in_flight) == (128, 128)
    assert {outcome.kind for outcome in outcomes} == {"answered"}


def test_after_a_broken_connection_the_next_request_goes_where_the_server_is_now() -> None:
    async def twice(gone: str, found: str) -> list[str]:
        async with EndpointClient(Endpoint("e", gone, "", True), locate=lambda: found) as opened:
            return [(await opened.send(BODY, timeout=10)).kind for _ in range(2)]

    with StubEndpoint(lambda body: StubReply(close=True)) as gone, StubEndpoint(fixed("yes")) as found:
        assert asyncio.run(twice(gone.base_url, found.base_url)) == ["connection", "answered"]


def test_log_probabilities_are_read() -> None:
    alternatives = [{"token": "TRUE", "logprob": -0.1}, {"token": "FALSE", "logprob": -2.5}]
    content = [{"token": "TRUE", "logprob": -0.1, "top_logprobs": alternatives}]
    outcome = send(
        lambda body: StubReply(raw=body_of(message={"content": "TRUE"}, logprobs={"content": content}))
    )
    assert outcome.logprobs is not None
    assert outcome.logprobs[0].top == (("TRUE", -0.1), ("FALSE", -2.5))


@pytest.mark.parametrize("logprob", [10**400, float("inf"), "high", None])
def test_a_log_probability_that_is_none_is_left_out(logprob: Any) -> None:
    content = [{"token": "TRUE", "logprob": logprob}]
    raw = json.dumps({"choices": [{"message": {"content": "TRUE"}, "logprobs": {"content": content}}]})
    outcome = read_reply(status=200, headers={}, content=raw.replace("Infinity", "1e999").encode())
    assert (outcome.kind, outcome.logprobs) == ("answered", None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After-Ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_each_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


FIELDS = [
    "choices",
    "message",
    "content",
    "reasoning",
    "text",
    "thinking",
    "refusal",
    "finish_reason",
    "usage",
    "prompt_tokens",
    "cached_tokens",
    "total_tokens",
    "completion_tokens_details",
    "reasoning_tokens",
]
FIELDS += [
    "prompt_tokens_details",
    "logprobs",
    "top_logprobs",
    "token",
    "logprob",
    "error",
    "code",
    "type",
    "id",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=500)
@given(status=st.sampled_from([200, 302, 400, 401, 429, 500]), data=JSON | st.binary(max_size=50))
def test_no_reply_whatever_crashes_the_reader(status: int, data: Any) -> None:
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    outcome = read_reply(status=status, headers={}, content=content, secret=KEY)
    assert (outcome.kind == "answered") == (outcome.error == "")
    outcome.text.encode()
    if outcome.kind == "answered":
        assert outcome.text.strip()
