"""Starting a test."""

from django.http import Http404, HttpRequest, HttpResponse


def regression_new(request: HttpRequest) -> HttpResponse:
    """Form."""
    raise Http404
