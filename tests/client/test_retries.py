"""The client sends a request again where that does no harm, and says in words why it gave up."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from lace_client import InvalidRequest, NotAllowed, NotFinished, Unreachable, Workbench

RUN = {"id": 7, "state": "running", "units": 3}
Answer = httpx.Response | Exception


class Server:
    """Gives these answers one after the other, and keeps the requests and the pauses between them."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = iter(answers)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def workbench(self) -> Workbench:
        return Workbench(
            "https://lace.test",
            "lace_token",
            attempts=3,
            transport=httpx.MockTransport(self),
            sleep=self.pauses.append,
        )


def started() -> httpx.Response:
    return httpx.Response(202, json=RUN)


def fault(status: int, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"detail": "Busy."}, headers=headers)


def body_of(request: httpx.Request) -> dict[str, Any]:
    return dict(json.loads(request.content))


def test_the_token_is_in_the_header() -> None:
    server = Server(started())
    assert server.workbench().start_run("nightly", engine="direct") == 7
    assert server.requests[0].headers["Authorization"] == "Token lace_token"


def test_a_request_is_sent_again_after_the_seconds_that_the_server_asks_for() -> None:
    server = Server(fault(429, **{"Retry-After": "7"}), fault(503, **{"Retry-After": "900"}), started())
    server.workbench().start_run("nightly", engine="direct")
    assert server.pauses == [7, 60]  # never longer than a minute


def test_retry_after_may_be_a_date() -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    server = Server(fault(503, **{"Retry-After": at}), started())
    server.workbench().start_run("nightly", engine="direct")
    assert 25 < server.pauses[0] <= 30


def test_without_it_the_pauses_grow() -> None:
    server = Server(fault(502), fault(500), started())
    server.workbench().start_run("nightly", engine="direct")
    assert 0.5 <= server.pauses[0] <= 1 <= server.pauses[1] <= 2


def test_a_run_that_is_asked_for_again_keeps_its_client_id() -> None:
    server = Server(httpx.ReadTimeout("no answer"), started())
    server.workbench().start_run("nightly", engine="direct")
    first, second = map(body_of, server.requests)
    assert first["client_id"] == second["client_id"]


def test_chats_that_are_sent_again_keep_their_idempotency_key() -> None:
    counts = {"received": 1, "created": 1, "updated": 0, "unchanged": 0, "refused": 0}
    sent: dict[str, Any] = {**counts, "ignored": {}, "redactions": {}, "errors": []}
    at_work = httpx.Response(409, json={"detail": "Still at work.", "code": "in_progress"})
    server = Server(fault(502), at_work, *(httpx.Response(200, json=sent) for _ in range(2)))
    workbench = server.workbench()
    for _ in range(2):
        workbench.send_chats([{"id": "a", "messages": [{"role": "user", "content": "Hi"}]}])
    first, retry, again, other = (request.headers["Idempotency-Key"] for request in server.requests)
    assert first == retry == again != other


def test_what_may_have_been_done_and_is_not_recognised_is_not_sent_again() -> None:
    server = Server(fault(500))
    with pytest.raises(Unreachable, match="500: Busy"):
        server.workbench().client.get_httpx_client().post("/api/runs/7/cancel/")
    assert server.pauses == []


def test_the_last_answer_is_the_error() -> None:
    server = Server(fault(429), fault(429), fault(429))
    with pytest.raises(Unreachable, match=r"answered 429: Busy\. \(POST /api/runs/\)"):
        server.workbench().start_run("nightly", engine="direct")


def test_a_server_that_is_away_is_named() -> None:
    server = Server(*(httpx.ConnectError("refused") for _ in range(3)))
    with pytest.raises(Unreachable, match=r"https://lace\.test cannot be reached: refused"):
        server.workbench().start_run("nightly", engine="direct")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (httpx.Response(401, json={"detail": "x"}), NotAllowed, "unknown, revoked or expired"),
        (httpx.Response(404, json={"detail": "x"}), NotAllowed, "lacks a scope"),
        (httpx.Response(400, json={"set": ["No set."], "split": ["No split."]}), InvalidRequest, "split: No"),
        (
            httpx.Response(409, json={"detail": "It is done.", "code": "refused"}),
            InvalidRequest,
            "It is done",
        ),
        (httpx.Response(418, text="<html>"), Unreachable, "418"),
    ],
)
def test_a_refusal_is_said_in_words_and_not_sent_again(
    answer: httpx.Response, kind: type[Exception], words: str
) -> None:
    server = Server(answer)
    with pytest.raises(kind, match=words):
        server.workbench().start_run("nightly", engine="direct")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(200, html="<p>Sign in</p>"), "no JSON"),
        (httpx.Response(200, json={}), "Update the client"),
    ],
)
def test_the_answer_of_another_program_or_version_is_no_answer(answer: httpx.Response, words: str) -> None:
    server = Server(answer)
    with pytest.raises(Unreachable, match=words):
        server.workbench().start_run("nightly", engine="direct")


# ---------- waiting ----------


def run_rows(*states: str) -> Iterator[httpx.Response]:
    texts = dict.fromkeys(("set", "judge", "fingerprint", "engine", "model", "error", "hold_up"), "")
    numbers = ("units", "units_done", "units_failed", "in_flight", "workers", "calls", "reused")
    tokens = ("prompt_tokens", "cached_tokens", "completion_tokens", "unknown_cost_requests", "rate")
    nothing = ("cost_usd", "unknown_cost_usd", "budget_usd", "seconds_left", "finished_at")
    row = texts | dict.fromkeys((*numbers, *tokens), 0) | dict.fromkeys(nothing)
    for state in states:
        at = {"id": 7, "state": state, "state_label": state.title(), "created_at": "2026-11-01T00:00:00Z"}
        yield httpx.Response(200, json=row | at)


def test_a_run_is_waited_for_until_it_is_done() -> None:
    server = Server(*run_rows("running", "running", "done"))
    assert server.workbench().wait_for_run(7).state == "done"
    assert server.pauses == [0.5, 1]  # then ever longer, up to 5 seconds


@pytest.mark.parametrize("state", ["paused", "cancelled"])
def test_a_run_that_stands_still_is_not_waited_for(state: str) -> None:
    with pytest.raises(NotFinished, match=f"Run 7 is {state}"):
        Server(*run_rows("running", state)).workbench().wait_for_run(7)


def test_nobody_waits_longer_than_asked() -> None:
    with pytest.raises(NotFinished, match="not done after 0 seconds"):
        Server(*run_rows("running")).workbench().wait_for_run(7, timeout=0)


def test_the_environment_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_URL", "https://lace.test")
    monkeypatch.delenv("LACE_TOKEN", raising=False)
    make: Callable[[], Workbench] = Workbench.from_environment
    with pytest.raises(InvalidRequest, match=r"Set the environment variable LACE_TOKEN\."):
        make()
