"""The prompt editor."""

from django.http import Http404, HttpRequest, HttpResponse


def prompt_edit(request: HttpRequest, key: str) -> HttpResponse:
    """The editor."""
    raise Http404
