"""Test connection: real requests, the endpoint's own words without the key, and what to do."""

import json

import pytest
from pytest_django import Settings

from evaluation.connections.services import Connection, endpoint_connect
from evaluation.connections.worker import ConnectionTest, endpoint_test
from evaluation.gateway.keys import Secret
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import EndpointModel
from tests.stub_endpoint import Body, StubEndpoint, StubReply, fixed

pytestmark = pytest.mark.django_db(transaction=True)
AWAY = StubReply(status=302, headers={"Location": "https://x.test/"})
KEY = "sk-canary-0123456789abcdef"


def connected(address: str, *models: str) -> ConnectedEndpoint:
    choice = Connection(name="Office", address=address, key=Secret(KEY), models=models or ("m",))
    return endpoint_connect(choice=choice, by=None)


def result_of(stub: StubEndpoint, *models: str) -> ConnectionTest:
    return endpoint_test(endpoint=connected(stub.base_url, *models), by=None)


def test_it_lists_the_models_and_asks_each_chosen_one() -> None:
    with StubEndpoint(fixed("ready")) as stub:
        stub.models = ["b", "a"]
        result = result_of(stub, "a", "b")
        assert result.ok and result.found == ("a", "b")
        assert [step.what for step in result.steps] == ["Model list", "a", "b"]
        assert {body["model"] for body in stub.requests} == {"a", "b"}
        assert {one.headers["Authorization"] for one in stub.seen} == {f"Bearer {KEY}"}
    row = ConnectedEndpoint.objects.get()
    assert row.test and row.test["ok"] and row.tested_at


def test_the_error_is_the_endpoints_own_text_without_the_key() -> None:
    said = f'{{"error": {{"message": "Incorrect API key provided: {KEY}. <b>See</b> {KEY[4:20]}"}}}}'
    with StubEndpoint(lambda body: StubReply(status=401, raw=said.encode())) as stub:
        result = result_of(stub)
    step = result.steps[-1]
    assert not result.ok
    assert step.error.startswith(
        'HTTP 401 Unauthorized: {"error": {"message": "Incorrect API key provided: [key]'
    )
    assert "<b>See</b> [key]" in step.error
    assert "Replace the key" in step.advice
    assert KEY not in json.dumps(ConnectedEndpoint.objects.get().test)


def test_a_model_that_is_gone_names_those_that_are_there() -> None:
    gone = json.dumps({"error": {"message": "The model `m` does not exist."}}).encode()
    with StubEndpoint(lambda body: StubReply(status=404, raw=gone)) as stub:
        stub.models = ["small-3"]
        step = result_of(stub).steps[-1]
    assert step.error == f"HTTP 404 Not Found: {gone.decode()}"
    assert step.advice == "Choose a model that it lists, such as small-3."


def test_a_refused_parameter_is_learned_and_left_out() -> None:
    def answer(body: Body) -> StubReply:
        if "max_tokens" in body:
            words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            error = {"message": words, "param": "max_tokens", "code": "unsupported_parameter"}
            return StubReply(status=400, raw=json.dumps({"error": error}).encode())
        return StubReply("ready")

    with StubEndpoint(answer) as stub:
        assert result_of(stub).ok
    assert EndpointModel.objects.get().learned == {"token_limit": "max_completion_tokens"}


@pytest.mark.parametrize(
    ("reply", "error", "advice"),
    [
        (
            StubReply(status=302, headers={"Location": "https://x.test/"}),
            "redirects to https://x.test/",
            "not followed",
        ),
        (StubReply(raw=b"<html>Welcome</html>"), "<html>Welcome</html>", "no JSON"),
        (
            StubReply(status=503, raw=b"overloaded"),
            "HTTP 503 Service Unavailable: overloaded",
            "itself failed",
        ),
        (StubReply(close=True), "", "server runs"),
    ],
)
def test_every_error_says_what_to_do(reply: StubReply, error: str, advice: str) -> None:
    with StubEndpoint(lambda body: reply) as stub:
        step = result_of(stub).steps[-1]
    assert not step.ok and error in step.error and advice in step.advice


def test_a_server_that_does_not_run_is_named() -> None:
    result = endpoint_test(endpoint=connected("http://127.0.0.1:9/v1"), by=None)
    assert not result.ok and "Connect call failed ('127.0.0.1', 9)" in result.error
    assert "server runs" in result.steps[0].advice


def test_an_address_that_is_not_allowed_any_more_is_not_dialled(settings: Settings) -> None:
    with StubEndpoint(fixed("ready")) as stub:
        row = connected(stub.base_url)
        settings.LACE_LOOPBACK_ONLY = False
        result = endpoint_test(endpoint=row, by=None)
        assert stub.count == 0
    assert result.error == "127.0.0.1 is this machine itself"
    assert "operator of this server" in result.steps[0].advice


def test_an_endpoint_without_a_list_works_if_its_models_do() -> None:
    with StubEndpoint(fixed("ready")) as stub:
        result = result_of(stub)
    assert result.ok and not result.found and not result.steps[0].ok
