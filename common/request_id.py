"""An id for each request: sent back in a header, and stored with what the request changed."""

from collections.abc import Callable
from contextvars import ContextVar
from uuid import uuid4

from django.http import HttpRequest, HttpResponse

Handler = Callable[[HttpRequest], HttpResponse]
HEADER = "X-Request-ID"

_current: ContextVar[str] = ContextVar("request_id", default="")


def current_request_id() -> str:
    """Return the id of the request at work; "" in a worker and on the command line."""
    return _current.get()


def request_ids(get_response: Handler) -> Handler:
    """Give each request an id of our own: a sender's could name another request."""

    def handle(request: HttpRequest) -> HttpResponse:
        token = _current.set(uuid4().hex)
        try:
            response = get_response(request)
            response[HEADER] = _current.get()
            return response
        finally:
            _current.reset(token)

    return handle
