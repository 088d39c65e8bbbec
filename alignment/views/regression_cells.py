"""Chats behind a cell."""

from django.http import Http404, HttpRequest, HttpResponse


def regression_cell(request: HttpRequest, test_id: int, key: str, cell: str) -> HttpResponse:
    """List."""
    raise Http404


def regression_chat(request: HttpRequest, test_id: int, key: str, chat_id: int) -> HttpResponse:
    """Side by side."""
    raise Http404
