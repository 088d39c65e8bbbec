"""Middleware against malformed requests and shared caches."""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import unquote

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse

Handler = Callable[[HttpRequest], HttpResponse]


def _is_signed_in(request: HttpRequest) -> bool:
    """Return whether a user or a token asks; True where the database cannot tell."""
    try:
        # Missing where the request was refused before its session was read. A token's user is here, too.
        return hasattr(request, "user") and request.user.is_authenticated
    except (DatabaseError, InterfaceError):
        return True


def no_nul(get_response: Handler) -> Handler:
    """Answer 404 to a NUL in the address, which PostgreSQL would refuse."""

    def handle(request: HttpRequest) -> HttpResponse:
        if "\x00" in request.path or "\x00" in unquote(request.META.get("QUERY_STRING", "")):
            if request.path.startswith("/api/"):
                return JsonResponse({"detail": "Not found."}, status=HTTPStatus.NOT_FOUND)
            return HttpResponseNotFound("not found\n", content_type="text/plain")
        return get_response(request)

    return handle


def no_store(get_response: Handler) -> Handler:
    """Let no cache keep what a signed-in user or a token got; static files are served before."""

    def handle(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code == HTTPStatus.SERVICE_UNAVAILABLE or _is_signed_in(request):
            response["Cache-Control"] = "private, no-store"
        return response

    return handle
