"""Logs: one JSON object a line with the ids of request, user, task and run; no chat text and no key, ever."""

import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery.app.trace import build_tracer
from django.db import IntegrityError
from django.test import Client
from pytest_django import Settings
from structlog.contextvars import bound_contextvars

from evaluation.models.runs import Run
from evaluation.tasks import process_units
from labeling.models.people import User
from labeling.people.services.tokens import token_create
from lace_site import celery_app
from lace_site.watch.logs import OWN, formatter
from lace_site.watch.requests import HEADER
from tests.factories.api_calls import label_url, put
from tests.factories.labelling_job import Desk, make_desk, user_of
from tests.factories.rows import make_rubric, make_set
from tests.factories.runs import KEY, answering, chats_of, evaluate
from tests.factories.workers import launched
from tests.stub_endpoint import Body, StubReply

pytestmark = pytest.mark.django_db
CANARY = "canary-of-a-chat"


class Lines(io.StringIO):
    """What was logged."""

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines, read as JSON."""
        return [json.loads(line) for line in self.getvalue().splitlines()]

    def named(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["event"] == event]


@pytest.fixture
def log() -> Iterator[Lines]:
    """The log in production's form, with all that the lowest level shows."""
    lines = Lines()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(formatter(form="json", debug=False))
    levels = {name: logging.getLogger(name).level for name in OWN}
    logging.getLogger().addHandler(handler)
    for name in OWN:
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield lines
    logging.getLogger().removeHandler(handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


# ---------- requests ----------


def test_a_request_is_one_line_with_route_status_time_and_the_users_id(
    log: Lines, client: Client, author_user: User
) -> None:
    client.force_login(author_user)
    answer = client.get("/criteria/", {"q": CANARY})
    (line,) = log.named("request")
    assert line["request_id"] == answer[HEADER]
    assert (line["route"], line["method"], line["status"]) == ("alignment:criterion_list", "GET", 200)
    assert line["user"] == author_user.pk
    assert line["ms"] > 0
    assert author_user.username not in log.getvalue()
    assert CANARY not in log.getvalue()


def test_a_token_is_logged_as_its_user(log: Lines, client: Client, lead_user: User) -> None:
    secret = token_create(user=lead_user, name="ci", scopes=["see_judge"], days=1).secret
    client.get("/api/runs/", headers={"authorization": f"Token {secret}"})
    assert log.named("request")[0]["user"] == lead_user.pk
    assert secret not in log.getvalue()


def test_a_stranger_is_no_user_and_costs_no_query(
    log: Lines, client: Client, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        client.get("/healthz")
    assert "user" not in log.named("request")[0]


@pytest.mark.parametrize("sent", ["7b1d0123-4567-89ab-cdef-0123456789ab", "proxy.4711_x", "a" * 64])
def test_a_well_formed_request_id_is_kept(client: Client, sent: str) -> None:
    assert client.get("/healthz", headers={HEADER: sent})[HEADER] == sent


@pytest.mark.parametrize(
    "sent", ["", "short", "a" * 65, "two words 1", 'quote"quote', "-leading-dash", "é" * 9]
)
def test_any_other_request_id_is_replaced(client: Client, sent: str) -> None:
    first, second = (client.get("/healthz", headers={HEADER: sent})[HEADER] for _ in range(2))
    assert len({sent, first, second}) == 3


def test_a_refused_request_is_logged_without_its_address(log: Lines, client: Client, lead_user: User) -> None:
    client.force_login(lead_user)
    client.get(f"/join/{CANARY}/")
    (line,) = log.named("request refused or failed")
    assert (line["status"], line["level"]) == (404, "warning")
    assert CANARY not in log.getvalue()


def test_an_error_is_logged_by_kind_and_place_without_its_text(
    log: Lines, lead_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        try:
            raise IntegrityError(f"Key (text)=({CANARY}) already exists.")
        except IntegrityError as error:
            raise ValueError(CANARY) from error

    monkeypatch.setattr("evaluation.runs.views.runs.render", fail)
    client = Client(raise_request_exception=False)
    client.force_login(lead_user)
    assert client.get("/runs/").status_code == 500
    (line,) = log.named("request refused or failed")
    assert (line["error"], line["error_causes"]) == ("ValueError", ["IntegrityError"])
    assert line["error_at"][-1].endswith(" fail")
    assert line["route"] == "evaluation:run_list"
    assert CANARY not in log.getvalue()


# ---------- tasks ----------


def run_task(task: Any, *args: Any, **headers: Any) -> None:
    """Execute a task as a worker does: its errors are logged and not raised."""
    request = {"id": "task-1", "task": task.name, "args": args, "kwargs": {}, "is_eager": False, **headers}
    tracer = build_tracer(task.name, task, app=celery_app)
    tracer("task-1", args, {}, request)


def test_a_workers_lines_name_task_run_and_the_request_that_asked(
    log: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(run_id: int, _: Any) -> bool:
        logging.getLogger("evaluation.tasks").warning("at work")
        raise RuntimeError(CANARY)

    monkeypatch.setattr("evaluation.tasks.enqueue_answered", work)
    run_task(process_units, 7, request_id="request-of-a-page")
    (line,) = log.named("at work")
    assert (line["task"], line["run"]) == (process_units.name, 7)
    assert (line["task_id"], line["request_id"]) == ("task-1", "request-of-a-page")
    failed = next(one for one in log.events if one.get("error") == "RuntimeError")
    assert failed["run"] == 7
    assert CANARY not in log.getvalue()
    logging.getLogger("evaluation.tasks").warning("afterwards")
    assert "run" not in log.named("afterwards")[0]


def test_a_task_carries_the_id_of_the_request_that_enqueued_it() -> None:
    with bound_contextvars(request_id="request-of-a-page"):
        celery_app.send_task("evaluation.tasks.process_units", [7], queue="watched")
    with celery_app.connection() as broker:
        message = broker.SimpleQueue("watched").get(timeout=1)
    assert message.headers["request_id"] == "request-of-a-page"
    assert message.headers["sent_at"] == pytest.approx(time.time(), abs=60)


def test_celery_leaves_the_configuration_of_the_log_alone() -> None:
    before = list(logging.getLogger().handlers)
    celery_app.log.setup(loglevel="INFO", redirect_stdouts=True)
    assert logging.getLogger().handlers == before
    assert sys.stderr.__class__.__name__ != "LoggingProxy"


# ---------- other programs ----------


@pytest.mark.parametrize(
    ("logger", "template", "args", "logged"),
    [
        ("evaluation.x", "run %s stopped: %s", (7, ValueError(CANARY)), "run 7 stopped: ValueError"),
        (
            "evaluation.x",
            "no broker: %s",
            (ConnectionRefusedError("port 5672"),),
            "no broker: ConnectionRefusedError: port 5672",
        ),
        ("aiohttp.client", "body %s of %d bytes", (CANARY, 5), "body … of 5 bytes"),
        (
            "asyncio",
            f"Task exception was never retrieved\nfuture: {CANARY}",
            (),
            "Task exception was never retrieved",
        ),
        (
            "celery.worker.consumer",
            "cannot connect to %s",
            ("redis://host",),
            "cannot connect to redis://host",
        ),
        (
            "celery.app.trace",
            "Task %(name)s failed: %(exc)s",
            ({"name": "t", "exc": CANARY},),
            "Task t failed: …",
        ),
    ],
)
def test_values_of_strangers_are_left_out_of_the_text(
    log: Lines, logger: str, template: str, args: Any, logged: str
) -> None:
    logging.getLogger(logger).warning(template, *args)
    assert [one["event"] for one in log.events] == [logged]
    assert CANARY not in log.getvalue()


# ---------- whole flows ----------


def repeats_the_request(body: Body) -> StubReply:
    """An endpoint that fails and repeats chat and key in its words."""
    echo = {"error": {"message": f"cannot answer {CANARY} for Bearer {KEY}", "sent": body}}
    return StubReply(status=400, raw=json.dumps(echo).encode())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "status",
    [400, 401, pytest.param(500, marks=pytest.mark.heavy), pytest.param(200, marks=pytest.mark.heavy)],
)
def test_a_run_logs_neither_chat_nor_key(log: Lines, settings: Settings, status: int) -> None:
    def reply(body: Body) -> StubReply:
        return StubReply(status=status, raw=repeats_the_request(body).raw)

    chat_set = make_set(make_rubric("polite"), *chats_of(2, text=CANARY), name="calibration")
    with answering(settings, reply) as stub:
        settings.LACE_REQUEST_TIMEOUT = 2
        run = launched(chat_set)
        run_task(process_units, run.pk, Run.objects.get(pk=run.pk).rung_at.isoformat())  # type: ignore[union-attr]
        if status in (400, 401):
            evaluate("--set", "calibration", "--engine", "direct", "--replicate", "1")
        assert CANARY in json.dumps(stub.requests[0])
    logging.getLogger("evaluation.end").warning("end")
    assert log.named("end")
    assert CANARY not in log.getvalue()
    assert KEY not in log.getvalue()


@pytest.mark.django_db(transaction=True)
def test_pages_imports_and_labels_log_neither_texts_nor_passwords(log: Lines, tmp_path: Path) -> None:
    desk: Desk = make_desk()
    rater = Client()
    rater.force_login(user_of(desk.rater))
    put(rater, label_url(desk.taken()), value=False, rationale=CANARY)
    rater.post("/accounts/login/", {"login": CANARY, "password": CANARY})
    for path in ("/search/", "/queue/", f"/accounts/password/reset/key/{CANARY}/", f"/{CANARY}/"):
        rater.get(path, {"q": CANARY}, headers={"cookie": f"sessionid={CANARY}"})
    rater.post("/api/chats/", {"chats": [{"id": CANARY}]}, content_type="application/json")
    rater.get("/healthz", headers={"host": f"{CANARY}.example"})
    assert len(log.named("request")) == 8
    assert CANARY not in log.getvalue()
