"""API of the alignment report: of a run, of a chat set, and stored ones as document and table."""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.comparison.api import REPORT_PARAMETERS
from alignment.comparison.queries.answers import UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.csv_rows import HEAD
from alignment.reports.queries.chat_lists import listed
from alignment.reports.queries.reports import alignment_report
from alignment.reports.queries.stored import readable_report, stored_csv_rows, stored_json
from common.access import found_or_404
from common.api import FORBIDDEN, NO_ACCESS, DownloadView
from common.downloads import table_file
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import ChatSet
from labeling.people.api.permissions import SeesJudge

REPORT_SCHEMA = extend_schema(
    parameters=REPORT_PARAMETERS,
    responses={
        200: OpenApiResponse(OpenApiTypes.OBJECT, description="The document of `alignment_report --json`"),
        403: FORBIDDEN,
        404: OpenApiResponse(description="Run, set or rater not found, or no permission."),
    },
)


class RunReport(APIView):
    """Alignment report of a run."""

    permission_classes = [SeesJudge]

    @REPORT_SCHEMA
    def get(self, request: Request, run_id: int) -> Response:
        """Agreement of a run's judge with the raters, by criterion."""
        run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        return _report(request, run.chat_set, run)


class SetReport(APIView):
    """Agreement between the raters of a chat set."""

    permission_classes = [SeesJudge]

    @REPORT_SCHEMA
    def get(self, request: Request, set_id: int) -> Response:
        """Agreement between the raters of a chat set, by criterion."""
        return _report(request, get_object_or_404(ChatSet, pk=set_id), None)


class StoredReport(APIView):
    """A stored report."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="stored_report",
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reference/api.md, Documents"),
            **NO_ACCESS,
        },
    )
    def get(self, request: Request, report_id: int) -> Response:
        """The report as it was stored, whatever has changed since; `pinned` identifies its input."""
        row = found_or_404(readable_report(report_id, user=request.user))
        return Response(stored_json(row, user=request.user))


class StoredReportTable(DownloadView):
    """A stored report for spreadsheets."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="stored_report_csv", responses={(200, "text/csv"): OpenApiTypes.STR, **NO_ACCESS}
    )
    def get(self, request: Request, report_id: int) -> HttpResponse:
        """One row per criterion, dimension and tier, and one for all; cells never start a formula."""
        row = found_or_404(readable_report(report_id, user=request.user))
        return table_file(stored_csv_rows(row), HEAD, name=f"alignment-report-{row.pk}.csv")


def _report(request: Request, chat_set: ChatSet | None, run: Run | None) -> Response:
    scope = found_or_404(requested_scope(chat_set, run, request.query_params, request.user))
    try:
        return Response(_visible(alignment_report(scope), scope, request))
    except UnknownRater as error:
        raise Http404 from error


def _visible(report: dict[str, Any], scope: Scope, request: Request) -> dict[str, Any]:
    """Return the report without the disagreements in chats that the user may not see."""
    rows = report["disagreements"]
    allowed = set(listed([row["chat_id"] for row in rows], scope, request.user))
    return report | {"disagreements": [row for row in rows if row["chat_id"] in allowed]}
