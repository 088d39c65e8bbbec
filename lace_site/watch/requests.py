"""Middleware: each request has an id, one log line, and its time in the metrics."""

import re
import time
import uuid
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

from common.tracing import span
from lace_site.watch.logs import current_request
from lace_site.watch.pages_timed import known_method, page_timed

log = structlog.get_logger(__name__)

HEADER = "X-Request-ID"
WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
Handler = Callable[[HttpRequest], HttpResponse]


def request_id(request: HttpRequest) -> str:
    """Return the id that the client or proxy sent, if it is well-formed, else a new one."""
    sent = request.headers.get(HEADER, "")
    return sent if WELL_FORMED.fullmatch(sent) else uuid.uuid4().hex


def trace_headers(request: HttpRequest) -> dict[str, str]:
    """Return the headers that name the span of the client or proxy."""
    named = {name: request.headers.get(name, "") for name in ("traceparent", "tracestate")}
    return {name: value for name, value in named.items() if value}


def request_watched(get_response: Handler) -> Handler:
    """Give each request its id, return it, and log how it was answered."""

    def handle(request: HttpRequest) -> HttpResponse:
        began, identity = time.perf_counter(), request_id(request)
        request.META["LACE_REQUEST_ID"] = identity
        current = current_request.set(request)
        try:
            with (
                structlog.contextvars.bound_contextvars(request_id=identity),
                span("request", "server", headers=trace_headers(request)) as add,
            ):
                response = get_response(request)
                seconds, status = time.perf_counter() - began, response.status_code
                route = request.resolver_match.view_name if request.resolver_match else ""
                page_timed(route=route, method=request.method, status=status, seconds=seconds)
                method = known_method(request.method)
                add(name=f"{method} {route}".rstrip(), http_request_method=method, http_route=route)
                failed = str(status) if status >= 500 else ""
                add(http_response_status_code=status, lace_request=identity, failed=failed)
                log.info("request", status=status, ms=round(seconds * 1000, 1))
        finally:
            current_request.reset(current)
        response[HEADER] = identity
        return response

    return handle
