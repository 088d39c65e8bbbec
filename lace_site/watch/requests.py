"""Middleware: each request has an id, one log line, and its time in the metrics."""

import re
import time
import uuid
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

from lace_site.watch.logs import current_request
from lace_site.watch.pages_timed import page_timed

log = structlog.get_logger(__name__)

HEADER = "X-Request-ID"
WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
Handler = Callable[[HttpRequest], HttpResponse]


def request_id(request: HttpRequest) -> str:
    """Return the id that the client or proxy sent, if it is well-formed, else a new one."""
    sent = request.headers.get(HEADER, "")
    return sent if WELL_FORMED.fullmatch(sent) else uuid.uuid4().hex


def request_watched(get_response: Handler) -> Handler:
    """Give each request its id, return it, and log how it was answered."""

    def handle(request: HttpRequest) -> HttpResponse:
        began, identity = time.perf_counter(), request_id(request)
        request.META["LACE_REQUEST_ID"] = identity
        current = current_request.set(request)
        try:
            with structlog.contextvars.bound_contextvars(request_id=identity):
                response = get_response(request)
                seconds = time.perf_counter() - began
                match = request.resolver_match
                page_timed(
                    route=match.view_name if match else "",
                    method=request.method,
                    status=response.status_code,
                    seconds=seconds,
                )
                log.info("request", status=response.status_code, ms=round(seconds * 1000, 1))
        finally:
            current_request.reset(current)
        response[HEADER] = identity
        return response

    return handle
