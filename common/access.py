"""Access to pages: a page that the user may not open answers 404."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.http import Http404, HttpRequest, HttpResponseBase

View = Callable[..., HttpResponseBase]
Row = TypeVar("Row")


def found_or_404(row: Row | None) -> Row:
    """Return the row; raise Http404 where it is None."""
    if row is None:
        raise Http404
    return row


def permission_or_404(permission: str) -> Callable[[View], View]:
    """Guard a view: users without the permission get 404, which does not reveal that the page exists."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.has_perm(permission):
                raise Http404
            return view(request, *args, **kwargs)

        return guarded

    return decorate
