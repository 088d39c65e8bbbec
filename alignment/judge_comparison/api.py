"""API of the engine league: the document, and its figures as a table."""

from typing import Any, ClassVar, cast

from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.judge_comparison.queries.comparison import league_document
from alignment.judge_comparison.queries.page import HEAD, league_rows
from alignment.judge_comparison.queries.run_selection import league_choice
from common.api import INVALID, NO_ACCESS, ApiView, DownloadView, QueryInput, choice_parameter
from common.downloads import table_file
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User
from labeling.people.api.permissions import SeesJudge
from labeling.people.services.audit import audit


class LeagueQuery(QueryInput):
    """The compared runs and their chats."""

    run = serializers.ListField(
        child=serializers.IntegerField(min_value=1),
        required=False,
        help_text="Two to six finished runs of the set. Default: the newest of each engine and model "
        "with enough verdicts.",
    )
    split = choice_parameter("split", Split.values)


RESPONSES: dict[int, Any] = {400: INVALID, **NO_ACCESS}


class SetLeague(ApiView):
    """Engine league of a chat set."""

    permission_classes = [SeesJudge]
    query_classes: ClassVar = {"GET": LeagueQuery}

    @extend_schema(
        operation_id="set_league",
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
    query_classes: ClassVar = {"GET": LeagueQuery}

    @extend_schema(
        operation_id="set_league_csv",
        responses={(200, "text/csv"): OpenApiTypes.STR, **RESPONSES},
    )
    def get(self, request: Request, set_id: int) -> HttpResponse:
        """One figure per row; cells never start a formula."""
        rows = league_rows(_document(request, set_id))
        chat_set = ChatSet.objects.get(pk=set_id)
        audit(actor=cast(User, request.user), verb="comparison exported", obj=chat_set, format="csv")
        return table_file(rows, HEAD, name=f"league-{set_id}.csv")


def _document(request: Request, set_id: int) -> dict[str, Any]:
    chat_set = get_object_or_404(ChatSet, pk=set_id)
    query: QueryDict = request.query_params
    choice = league_choice(chat_set, query=query, user=request.user)
    if choice is None or choice.problem:
        raise ValidationError({"run": choice.problem if choice else "Name finished runs of this chat set."})
    return league_document(choice)
