"""Middleware for what browsers, caches and programs may do, and against malformed requests."""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import unquote

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse

Handler = Callable[[HttpRequest], HttpResponse]
# Devices and powers of a browser that no page uses; passkeys are for pages of this site alone.
_UNUSED = (
    *("accelerometer", "bluetooth", "camera", "display-capture", "geolocation", "gyroscope", "hid"),
    *("magnetometer", "microphone", "midi", "payment", "screen-wake-lock", "serial", "usb"),
)
PERMISSIONS_POLICY = ", ".join(
    [
        *(f"{name}=()" for name in _UNUSED),
        "publickey-credentials-create=(self)",
        "publickey-credentials-get=(self)",
    ]
)


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
            return HttpResponseNotFound("not found\n", content_type="text/plain; charset=utf-8")
        return get_response(request)

    return handle


def browser_rules(get_response: Handler) -> Handler:
    """Tell browsers which of their devices no page uses, and that other sites embed nothing of ours."""

    def handle(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        response.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response

    return handle


def api_over_tls(get_response: Handler) -> Handler:
    """Refuse programs that come without TLS. A redirect would hide that they sent their token in clear."""

    def handle(request: HttpRequest) -> HttpResponse:
        if settings.SECURE_SSL_REDIRECT and request.path.startswith("/api/") and not request.is_secure():
            return JsonResponse({"detail": "Use HTTPS."}, status=HTTPStatus.FORBIDDEN)
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
