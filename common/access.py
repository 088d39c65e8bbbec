"""Who may open what: without the permission a page does not exist."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.http import Http404, HttpRequest, HttpResponseBase

View = Callable[..., HttpResponseBase]
Row = TypeVar("Row")


def found_or_404(row: Row | None) -> Row:
    """What a selector found for the user; without it there is nothing at this address."""
    if row is None:
        raise Http404
    return row


def permission_or_404(permission: str) -> Callable[[View], View]:
    """Guard a view: users without the permission get 404, so that nothing tells them what there is."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.has_perm(permission):
                raise Http404
            return view(request, *args, **kwargs)

        return guarded

    return decorate
