"""Policies."""

from django.http import Http404, HttpRequest, HttpResponse


def policy_list(request: HttpRequest) -> HttpResponse:
    """Page."""
    raise Http404
