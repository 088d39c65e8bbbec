"""API of the engine league: the document, and its figures as a table."""

from typing import Any

from django.http import HttpResponse, QueryDict
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
from common.access import found_or_404
from common.api import INVALID, NO_ACCESS, DownloadView
from common.downloads import table_file
from labeling.models.chats import ChatSet
from labeling.people.api.permissions import SeesJudge

PARAMETERS = [
    OpenApiParameter(
        "run",
        OpenApiTypes.INT,
        many=True,
        description="two to six finished runs of the set; default: the newest of each engine and model "
        "with enough verdicts",
    ),
    OpenApiParameter("split", OpenApiTypes.STR, enum=["train", "dev", "holdout"]),
]
RESPONSES: dict[int, Any] = {400: INVALID, **NO_ACCESS}


class SetLeague(APIView):
    """Engine league of a chat set."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="set_league",
        parameters=PARAMETERS,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reference/api.md, Documents"),
            **RESPONSES,
        },
    )
    def get(self, request: Request, set_id: int) -> Response:
        """Rates of each judge, differences of each pair, cost and latency."""
        return Response(_document(request, set_id))


class SetLeagueTable(DownloadView):
    """Engine league of a chat set for spreadsheets."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="set_league_csv",
        parameters=PARAMETERS,
        responses={(200, "text/csv"): OpenApiTypes.STR, **RESPONSES},
    )
    def get(self, request: Request, set_id: int) -> HttpResponse:
        """One figure per row; cells never start a formula."""
        return table_file(league_rows(_document(request, set_id)), HEAD, name=f"league-{set_id}.csv")


def _document(request: Request, set_id: int) -> dict[str, Any]:
    chat_set = get_object_or_404(ChatSet, pk=set_id)
    query: QueryDict = request.query_params
    choice = found_or_404(league_choice(chat_set, query=query, user=request.user))
    if choice.problem:
        raise ValidationError({"run": choice.problem})
    return league_document(choice)
