"""The alignment report over HTTP."""

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.comparison.queries.answers import UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import Scope
from alignment.reports.queries.chat_lists import listed
from alignment.reports.queries.reports import alignment_report
from common.api import FORBIDDEN
from evaluation.models.runs import Run
from evaluation.runs.api import SeesJudge
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import ChatSet

REPORT_PARAMETERS = [
    OpenApiParameter("split", OpenApiTypes.STR, enum=["train", "dev", "holdout"]),
    OpenApiParameter("against", OpenApiTypes.STR, description="consensus, each-rater or rater:NAME"),
    OpenApiParameter("topic", OpenApiTypes.STR, description="key of a topic"),
    OpenApiParameter("since", OpenApiTypes.DATE, description="first day on which chats started"),
    OpenApiParameter("until", OpenApiTypes.DATE, description="last day on which chats started"),
]
REPORT_SCHEMA = extend_schema(
    parameters=REPORT_PARAMETERS,
    responses={
        200: OpenApiResponse(OpenApiTypes.OBJECT, description="The document of alignment_report --json"),
        403: FORBIDDEN,
        404: OpenApiResponse(description="No such run, set or rater, or no permission"),
    },
)


class RunReport(APIView):
    """The alignment report of a run."""

    permission_classes = [SeesJudge]

    @REPORT_SCHEMA
    def get(self, request: Request, run_id: int) -> Response:
        """The report."""
        run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        return _answer(request, run.chat_set, run)


class SetReport(APIView):
    """The human side alone."""

    permission_classes = [SeesJudge]

    @REPORT_SCHEMA
    def get(self, request: Request, set_id: int) -> Response:
        """The report."""
        return _answer(request, get_object_or_404(ChatSet, pk=set_id), None)


def _answer(request: Request, chat_set: ChatSet | None, run: Run | None) -> Response:
    scope = requested_scope(chat_set, run, request.query_params, request.user)
    if scope is None:
        raise Http404
    try:
        return Response(_shown(alignment_report(scope), scope, request))
    except UnknownRater as error:
        raise Http404 from error


def _shown(report: dict[str, Any], scope: Scope, request: Request) -> dict[str, Any]:
    """The list of disagreements names chats: those the user may not see are left out of it."""
    rows = report["disagreements"]
    allowed = set(listed([row["chat_id"] for row in rows], scope, request.user))
    return report | {"disagreements": [row for row in rows if row["chat_id"] in allowed]}
