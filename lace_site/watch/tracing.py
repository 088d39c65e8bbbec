"""Sends traces by OpenTelemetry, where OTEL_EXPORTER_OTLP_ENDPOINT says so: an extra, loaded only then."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from celery.signals import (
    before_task_publish,
    task_failure,
    task_postrun,
    task_prerun,
    worker_process_shutdown,
)
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from common.tracing import Add, Kind, Value, span, spans_begin
from lace_site.watch.tasks import ids

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_tasks: dict[str, Any] = {}


def traces_begin() -> None:
    """Send traces if the environment names a receiver. Raises ImproperlyConfigured without the extra."""
    if not os.environ.get(ENDPOINT):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ImproperlyConfigured(f"{ENDPOINT} needs requirements-otel.txt to be installed") from error
    named = {"service.name": os.environ.get("OTEL_SERVICE_NAME") or "lace"}
    resource = Resource.create({**named, "service.version": settings.SOFTWARE["version"]})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    traces_send(provider)


def traces_send(provider: Any) -> None:
    """Make spans of requests, tasks and calls with this provider."""
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    tracer, propagator = provider.get_tracer("lace"), TraceContextTextMapPropagator()

    @contextmanager
    def begin(
        name: str, kind: Kind, attributes: Mapping[str, Value], headers: Mapping[str, str] | None
    ) -> Iterator[Add]:
        parent = propagator.extract(dict(headers)) if headers else None
        made = tracer.start_span(
            name, context=parent, kind=trace.SpanKind[kind.upper()], attributes=_dotted(attributes)
        )

        def add(*, name: str = "", failed: str = "", **more: Value) -> None:
            if name:
                made.update_name(name)
            if failed:
                made.set_status(trace.StatusCode.ERROR)
                made.set_attribute("error.type", failed)
            made.set_attributes(_dotted(more))

        # NB: OpenTelemetry would record the error's text.
        with trace.use_span(made, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield add
            except BaseException as error:
                add(failed=type(error).__name__)
                raise

    def publish(headers: dict[str, Any] | None = None, **_: Any) -> None:
        if headers is not None:
            propagator.inject(headers)

    spans_begin(begin)
    before_task_publish.connect(publish, weak=False, dispatch_uid="trace")
    for signal, receiver in TASK_RECEIVERS:
        signal.connect(receiver, weak=False, dispatch_uid="trace")
    worker_process_shutdown.connect(lambda **_: provider.force_flush(2000), weak=False, dispatch_uid="trace")


def traces_end() -> None:
    """Make no more spans."""
    spans_begin(None)
    for signal in (before_task_publish, task_prerun, task_failure, task_postrun, worker_process_shutdown):
        signal.disconnect(dispatch_uid="trace")


def _dotted(attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Return attributes with the names of OpenTelemetry: http_request_method → http.request.method."""
    return {_name(name): value for name, value in attributes.items()}


def _name(name: str) -> str:
    return name.replace("status_code", "status-code").replace("_", ".").replace("-", "_")


def _task_begins(task: Any, task_id: str, args: Any, kwargs: Any, **_: Any) -> None:
    parent = {name: getattr(task.request, name, None) or "" for name in ("traceparent", "tracestate")}
    rows = {f"lace_{name}": value for name, value in ids(task.run, args, kwargs).items()}
    made = span(f"task {task.name}", "consumer", headers=parent, lace_task=task.name, **rows)
    _tasks[task_id] = made, made.__enter__()


def _task_failed(task_id: str, exception: BaseException, **_: Any) -> None:
    if task_id in _tasks:
        _tasks[task_id][1](failed=type(exception).__name__)


def _task_ends(task_id: str, **_: Any) -> None:
    if made := _tasks.pop(task_id, None):
        made[0].__exit__(None, None, None)


TASK_RECEIVERS = ((task_prerun, _task_begins), (task_failure, _task_failed), (task_postrun, _task_ends))
