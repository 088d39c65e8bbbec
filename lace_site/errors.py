"""The answers to errors that no view handles, and what reports of them hide."""

import sys
from collections.abc import ItemsView
from types import FrameType
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.csrf import requires_csrf_token

from common.database import RETRY_SECONDS, DatabaseTrouble, database_trouble


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 503 for trouble with the database, else 500: JSON to the API and to scripts, else a page.

    Django calls this while it handles the error. The pages use no database.
    """
    trouble = database_trouble(sys.exc_info()[1])
    response = _as_json(trouble) if _wants_json(request) else _as_page(trouble)
    if trouble:
        response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _wants_json(request: HttpRequest) -> bool:
    page = request.path.startswith("/api/docs/")
    return (request.path.startswith("/api/") and not page) or "application/json" in request.headers.get(
        "Accept", ""
    )


def _as_json(trouble: DatabaseTrouble | None) -> HttpResponse:
    if trouble is None:
        return JsonResponse({"detail": "Server error.", "code": "server_error"}, status=500)
    return JsonResponse({"detail": trouble.sentence, "code": trouble.code}, status=503)


def _as_page(trouble: DatabaseTrouble | None) -> HttpResponse:
    if trouble is None:
        return HttpResponse(render_to_string("500.html"), status=500)
    return HttpResponse(render_to_string("503.html", {"trouble": trouble}), status=503)


class KeysHidden(SafeExceptionReporterFilter):
    """Keep keys out of error reports, also of Django's debug page.

    Where a view marks a field of its form as sensitive, neither the form nor any local variable is shown:
    the key could be in all of them.
    """

    def is_active(self, request: HttpRequest | None) -> bool:
        """Return whether to hide what is marked: always."""
        return True

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> ItemsView[str, Any]:
        """Return a frame's variables, hidden where the request is marked."""
        if getattr(request, "sensitive_post_parameters", None):
            return dict.fromkeys(tb_frame.f_locals, self.cleansed_substitute).items()
        return super().get_traceback_frame_variables(request, tb_frame)
