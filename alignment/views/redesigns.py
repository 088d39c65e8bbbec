"""Split, merge, retire."""

from django.http import Http404, HttpRequest, HttpResponse


def redesign(request: HttpRequest, key: str) -> HttpResponse:
    """Page."""
    raise Http404
