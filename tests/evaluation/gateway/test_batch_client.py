"""The client of a Batch API trusts nothing that an endpoint sends and never shows the key."""

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from evaluation.gateway.batches import BatchClient, BatchGone, request_line
from evaluation.gateway.endpoints import Endpoint, resolve_endpoint
from evaluation.gateway.throttle import EndpointDown
from tests.stub_batches import StubBatches
from tests.stub_endpoint import StubReply, fixed

KEY = "sk-canary-77"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Straße\nof \ud800"}]}


@pytest.fixture
def stub() -> Iterator[StubBatches]:
    with StubBatches(fixed("Yes.")) as stub:
        yield stub


def endpoint_of(stub: StubBatches) -> Endpoint:
    return resolve_endpoint(base_url=stub.base_url, api_key=KEY)


@pytest.fixture
def client(stub: StubBatches) -> Iterator[BatchClient]:
    with BatchClient(endpoint_of(stub), timeout=10) as client:
        yield client


def recently() -> datetime:
    return datetime.now(UTC) - timedelta(minutes=1)


def submitted(client: BatchClient, *keys: str, name: str = "ours") -> str:
    content = b"".join(request_line(key, BODY) for key in keys)
    return client.create(client.upload(f"{name}.jsonl", io.BytesIO(content)), name=name).id


def test_a_file_goes_up_is_worked_off_and_its_answers_come_back(
    client: BatchClient, stub: StubBatches
) -> None:
    stub.behaviour.polls = 2
    batch = submitted(client, "a", "b")
    assert client.look(batch).state == "working"
    ended = client.look(batch)
    assert (ended.state, ended.errors) == ("completed", "")
    answers = list(client.answers(ended.output))
    assert [(one.key, one.outcome and one.outcome.text) for one in answers] == [("a", "Yes."), ("b", "Yes.")]


def test_what_was_created_before_a_crash_is_found_again(client: BatchClient, stub: StubBatches) -> None:
    batches = [submitted(client, "a", name=f"n{n}") for n in range(3)]
    found = client.find_batch(name="n1", since=recently())
    assert found is not None
    assert found.id == batches[1]
    assert client.find_file("n2.jsonl", since=recently()) == stub.batches[batches[2]].file
    assert client.find_batch(name="n7", since=recently()) is None
    assert client.find_file("n7.jsonl", since=recently()) == ""


def test_lists_are_read_page_by_page_and_no_further_than_needed(
    client: BatchClient, stub: StubBatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluation.gateway.batches._PAGE", 2)
    batches = [submitted(client, "a", name=f"n{n}") for n in range(5)]
    found = client.find_batch(name="n0", since=recently())
    assert found is not None
    assert found.id == batches[0]
    assert stub.steps.count("list batches") == 3
    stub.batches[batches[3]].created_at -= 7200
    assert client.find_batch(name="n0", since=recently()) is None
    assert stub.steps.count("list batches") == 4


def test_failures_of_lines_have_the_names_that_requests_have(client: BatchClient, stub: StubBatches) -> None:
    replies = {
        "a": StubReply(status=429, raw=b'{"error": {}}'),
        "b": StubReply("cut", finish_reason="length"),
    }
    stub.answer = lambda body: replies[body["user"]]
    content = b"".join(request_line(key, BODY | {"user": key}) for key in replies)
    batch = client.create(client.upload("f.jsonl", io.BytesIO(content)), name="f").id
    ended = client.look(batch)
    (cut_off,), (later,) = list(client.answers(ended.output)), list(client.answers(ended.errors))
    assert cut_off.outcome is not None and later.outcome is not None
    assert (cut_off.outcome.kind, later.outcome.kind) == ("cut_off", "rate_limited")


def test_lines_nobody_answered_in_time_have_no_outcome(client: BatchClient, stub: StubBatches) -> None:
    stub.behaviour.ends, stub.behaviour.answered = "expired", 1
    ended = client.look(submitted(client, "a", "b"))
    assert ended.state == "expired"
    assert [(one.key, one.outcome) for one in client.answers(ended.errors)] == [("b", None)]


def test_garbage_between_the_lines_is_passed_over(client: BatchClient, stub: StubBatches) -> None:
    long = b'{"id": "x", "custom_id": "big", "response": "' + b"x" * 1_100_000 + b'"}'
    lines = [b"<html>", b"[]", b'{"custom_id": 7}', b"\xff\xfe", long, b'{"custom_id": "n"}']
    file = stub._keep("output.jsonl", b"\n".join(lines))
    answers = {one.key: one.outcome and one.outcome.kind for one in client.answers(file.id)}
    assert answers == {"big": "too_big", "n": "server_error"}


def test_a_failed_batch_is_explained_by_its_code_never_in_the_endpoints_words(
    client: BatchClient, stub: StubBatches
) -> None:
    stub.behaviour.ends = "failed"
    ended = client.look(submitted(client, "a"))
    assert (ended.state, ended.error) == ("failed", "token_limit_exceeded")


def test_cancelling_what_is_over_is_no_trouble(client: BatchClient, stub: StubBatches) -> None:
    batch = submitted(client, "a")
    client.look(batch)
    client.cancel(batch)
    assert client.look(batch).state == "completed"


def test_an_endpoint_without_a_batch_api_is_named_in_one_line(client: BatchClient, stub: StubBatches) -> None:
    stub.behaviour.has_api = False
    with pytest.raises(BatchGone, match="no Batch API") as caught:
        client.upload("f.jsonl", io.BytesIO(b""))
    assert caught.value.lasting
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(("fail", "lasting"), [(1, False)])
def test_passing_trouble_is_distinguished(
    client: BatchClient, stub: StubBatches, fail: int, lasting: bool
) -> None:
    stub.behaviour.fail = fail
    with pytest.raises(EndpointDown, match="503") as caught:
        client.look("batch_1")
    assert caught.value.lasting is lasting


def test_a_dead_endpoint_is_trouble_that_may_pass() -> None:
    endpoint = resolve_endpoint(base_url="http://127.0.0.1:9/v1", api_key=KEY)
    with BatchClient(endpoint, timeout=2) as client, pytest.raises(EndpointDown, match="reached") as caught:
        client.look("batch_1")
    assert not caught.value.lasting


@pytest.mark.parametrize("id", ["../files", "a b", "", None, 7, "x" * 300])
def test_an_id_that_does_not_fit_into_an_address_is_refused(stub: StubBatches, id: object) -> None:
    class Lying(BatchClient):
        def _json(self, method, path, **options):
            return {"id": id, "status": "completed"}

    with Lying(endpoint_of(stub), timeout=2) as client, pytest.raises(EndpointDown, match="without an id"):
        client.look("batch_1")
