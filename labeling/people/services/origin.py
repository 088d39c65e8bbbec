"""Where a request comes from: address, browser and API token, for limits, mails and the audit log."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.conf import settings
from django.http import HttpRequest

from labeling.models.people import ApiToken
from labeling.people.core import browser_name, client_address

# A request without an address came over a socket of this machine.
THIS_MACHINE = "127.0.0.1"

_current: ContextVar[HttpRequest | None] = ContextVar("current_request", default=None)


@contextmanager
def answering(request: HttpRequest) -> Iterator[None]:
    """Name the request whose changes are made in here."""
    token = _current.set(request)
    try:
        yield
    finally:
        _current.reset(token)


def address_of(request: HttpRequest) -> str:
    """Return the client's address, behind as many proxies as LACE_TRUSTED_PROXIES says."""
    found = client_address(
        forwarded=request.META.get("HTTP_X_FORWARDED_FOR", ""),
        remote=request.META.get("REMOTE_ADDR", ""),
        proxies=settings.LACE_TRUSTED_PROXIES,
    )
    return found or THIS_MACHINE


def current_address() -> str:
    """Return the address of the client that asks; "" for workers and on the command line."""
    request = _current.get()
    return "" if request is None else address_of(request)


def current_browser() -> str:
    """Return the name of the browser or program that asks; "" for workers and on the command line."""
    request = _current.get()
    return "" if request is None else browser_name(request.META.get("HTTP_USER_AGENT", ""))


def current_token_name() -> str:
    """Return the name of the API token of the program that asks; "" for pages, workers and commands."""
    # NB: REST framework notes on the request what it was signed in with.
    token = getattr(_current.get(), "auth", None)
    return token.name if isinstance(token, ApiToken) else ""
