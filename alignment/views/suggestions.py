"""Suggested revisions."""

from django.http import Http404, HttpRequest, HttpResponse


def prompt_suggest(request: HttpRequest, key: str) -> HttpResponse:
    """Fragment."""
    raise Http404
