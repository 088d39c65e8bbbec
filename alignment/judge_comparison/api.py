"""The engine league over HTTP: a document, and the same figures as a table."""

from typing import Any

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.judge_comparison.queries.comparison import league_document
from alignment.judge_comparison.queries.page import HEAD, league_rows
from alignment.judge_comparison.queries.run_selection import league_choice
from common.api import FORBIDDEN, NOT_FOUND, WRONG
from common.downloads import table_file
from evaluation.runs.api import SeesJudge
from labeling.models.chats import ChatSet

PARAMETERS = [
    OpenApiParameter(
        "run",
        OpenApiTypes.INT,
        many=True,
        description="a finished run of the set, two to six times; else the newest of each engine and model "
        "that answered enough",
    ),
    OpenApiParameter("split", OpenApiTypes.STR, enum=["train", "dev", "holdout"]),
]
PROBLEMS: dict[int, Any] = {400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND}


class SetLeague(APIView):
    """Judges of a chat set, compared in pairs."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="set_league",
        parameters=PARAMETERS,
        responses={200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reports.md"), **PROBLEMS},
    )
    def get(self, request: Request, set_id: int) -> Response:
        """Each judge's rates, each pair's difference, what answers took and cost."""
        return Response(_document(request, set_id))


class SetLeagueTable(APIView):
    """The same for spreadsheets."""

    permission_classes = [SeesJudge]

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """The address says the format, whatever the header Accept says."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        operation_id="set_league_csv",
        parameters=PARAMETERS,
        responses={(200, "text/csv"): OpenApiTypes.STR, **PROBLEMS},
    )
    def get(self, request: Request, set_id: int) -> HttpResponse:
        """One figure a row; no cell is a formula."""
        return table_file(league_rows(_document(request, set_id)), HEAD, name=f"league-{set_id}.csv")


def _document(request: Request, set_id: int) -> dict[str, Any]:
    chat_set = get_object_or_404(ChatSet, pk=set_id)
    query: QueryDict = request.query_params
    choice = league_choice(chat_set, query=query, user=request.user)
    if choice is None:
        raise Http404
    if choice.problem:
        raise ValidationError({"run": choice.problem})
    return league_document(choice)
