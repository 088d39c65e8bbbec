"""Traces: requests, tasks and calls of models arrive at an OTLP receiver, and no text does."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from celery.app.trace import build_tracer
from celery.signals import before_task_publish
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pytest_django import Settings

from common.tracing import span
from evaluation.models.runs import Run
from evaluation.tasks import process_units
from labeling.models.people import User
from lace_site import celery_app
from lace_site.watch.tracing import ENDPOINT, traces_begin, traces_end, traces_send
from tests.factories.rows import make_rubric, make_set
from tests.factories.runs import KEY, answering, chats_of
from tests.factories.workers import launched
from tests.stub_endpoint import Body, StubReply

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-of-a-chat"


class Receiver(ThreadingHTTPServer):
    """A local OTLP/HTTP receiver."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Post)
        self.bodies: list[bytes] = []

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Every span: name, kind, ids and attributes."""
        found = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for one in (each for scope in resource.scope_spans for each in scope.spans):
                    values = {
                        item.key: item.value.string_value or item.value.int_value for item in one.attributes
                    }
                    ids = {"id": one.span_id, "parent": one.parent_span_id, "trace": one.trace_id.hex()}
                    found.append(
                        {"name": one.name, "events": len(one.events), "all": str(one), **ids, **values}
                    )
        return found

    def named(self, name: str) -> dict[str, Any]:
        return next(one for one in self.spans if one["name"] == name)


class Post(BaseHTTPRequestHandler):
    """Takes a request and stores its body."""

    server: Receiver

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver, and a provider that sends each span to it at once."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        provider = TracerProvider(shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{server.server_port}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        traces_send(provider)
        yield server
        traces_end()
        provider.shutdown()
        server.shutdown()
        thread.join()


def run_task(*args: Any, **headers: Any) -> None:
    request = {
        "id": "t1",
        "task": process_units.name,
        "args": args,
        "kwargs": {},
        "is_eager": False,
        **headers,
    }
    build_tracer(process_units.name, process_units, app=celery_app)("t1", args, {}, request)


def test_a_request_is_a_span_by_route_below_the_proxys(
    receiver: Receiver, client: Client, lead_user: User
) -> None:
    client.force_login(lead_user)
    trace = "0af7651916cd43dd8448eb211c80319c"
    sent = {"traceparent": f"00-{trace}-b7ad6b7169203331-01", "X-Request-ID": "request-of-a-test"}
    client.get("/runs/4711/", {"q": CANARY}, headers=sent)
    one = receiver.named("GET evaluation:run_detail")
    assert (one["http.request.method"], one["http.route"]) == ("GET", "evaluation:run_detail")
    assert (one["http.response.status_code"], one["lace.request"]) == (404, "request-of-a-test")
    assert one["trace"] == trace
    assert CANARY not in one["all"]
    assert "4711" not in one["all"]


def test_a_task_is_a_span_below_the_request_that_enqueued_it(receiver: Receiver) -> None:
    headers: dict[str, Any] = {}
    with span("request", "server"):
        before_task_publish.send(sender=process_units.name, headers=headers)
    run_task(7, **headers)
    task = receiver.named(f"task {process_units.name}")
    assert (task["lace.run"], task["parent"]) == (7, receiver.named("request")["id"])


def fails(body: Body) -> StubReply:
    """An endpoint that fails in words that repeat chat and key."""
    words = {"error": {"message": f"no answer to {CANARY} for {KEY}", "sent": body}}
    return StubReply(status=400, raw=json.dumps(words).encode())


def test_a_call_of_a_model_is_a_span_below_its_task_without_texts(
    receiver: Receiver, settings: Settings
) -> None:
    chat_set = make_set(make_rubric("polite"), *chats_of(1, text=CANARY), name="calibration")
    with answering(settings, fails) as stub:
        run = launched(chat_set)
        rung = Run.objects.get(pk=run.pk).rung_at
        assert rung is not None
        run_task(run.pk, rung.isoformat())
        assert "traceparent" not in {name.lower() for name in stub.seen[0].headers}
    call = receiver.named("POST /chat/completions")
    assert (call["server.address"], call["http.response.status_code"]) == ("127.0.0.1", 400)
    assert call["parent"] == receiver.named(f"task {process_units.name}")["id"]
    for one in receiver.spans:
        assert CANARY not in one["all"]
        assert KEY not in one["all"]


def test_an_error_is_a_kind_without_its_text(
    receiver: Receiver, lead_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("evaluation.tasks.enqueue_answered", fail)
    run_task(7)
    monkeypatch.setattr("evaluation.runs.views.runs.render", fail)
    client = Client(raise_request_exception=False)
    client.force_login(lead_user)
    client.get("/runs/")
    assert receiver.named(f"task {process_units.name}")["error.type"] == "ValueError"
    assert receiver.named("GET evaluation:run_list")["error.type"] == "500"
    assert [one["events"] for one in receiver.spans] == [0] * len(receiver.spans)
    assert CANARY not in "".join(one["all"] for one in receiver.spans)


def test_without_the_setting_nothing_is_loaded() -> None:
    script = (
        "import os, sys; os.environ.pop('OTEL_EXPORTER_OTLP_ENDPOINT', None)\n"
        "import django; django.setup()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_the_setting_without_the_extra_stops_the_start_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ImproperlyConfigured, match=ENDPOINT):
        traces_begin()
