"""Requests that no page can answer."""

from collections.abc import Callable
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse, HttpResponseNotFound

Handler = Callable[[HttpRequest], HttpResponse]


def no_nul(get_response: Handler) -> Handler:
    """A NUL in the address names nothing: 404 before PostgreSQL, whose texts hold none, is asked."""

    def handle(request: HttpRequest) -> HttpResponse:
        if "\x00" in request.path or "\x00" in unquote(request.META.get("QUERY_STRING", "")):
            return HttpResponseNotFound("not found\n", content_type="text/plain")
        return get_response(request)

    return handle
