"""Middleware against malformed requests and shared caches."""

from collections.abc import Callable
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse, HttpResponseNotFound

Handler = Callable[[HttpRequest], HttpResponse]


def no_nul(get_response: Handler) -> Handler:
    """Answer 404 to a NUL in the address, which PostgreSQL would refuse."""

    def handle(request: HttpRequest) -> HttpResponse:
        if "\x00" in request.path or "\x00" in unquote(request.META.get("QUERY_STRING", "")):
            return HttpResponseNotFound("not found\n", content_type="text/plain")
        return get_response(request)

    return handle


def no_store(get_response: Handler) -> Handler:
    """Let no cache keep what a signed-in user or a token got; static files are served before."""

    def handle(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        # The API puts the user of a token here, too.
        if request.user.is_authenticated:
            response["Cache-Control"] = "private, no-store"
        return response

    return handle
