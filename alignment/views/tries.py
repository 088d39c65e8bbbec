"""Preview and tries of a draft."""

from django.http import Http404, HttpRequest, HttpResponse


def prompt_preview(request: HttpRequest, key: str) -> HttpResponse:
    """Fragment."""
    raise Http404


def prompt_try(request: HttpRequest, key: str) -> HttpResponse:
    """Fragment."""
    raise Http404
