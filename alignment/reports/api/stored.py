"""Stored reports over HTTP: the document as it was, and the same figures as a table."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.reports.core.csv_rows import HEAD
from alignment.reports.queries.stored import stored_found, stored_json, stored_lines
from common.access import found_or_404
from common.api import FORBIDDEN, NOT_FOUND
from common.downloads import table_file
from evaluation.runs.api import SeesJudge

PROBLEMS: dict[int, Any] = {403: FORBIDDEN, 404: NOT_FOUND}


class StoredReport(APIView):
    """A report that was stored."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="stored_report",
        responses={200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reports.md"), **PROBLEMS},
    )
    def get(self, request: Request, report_id: int) -> Response:
        """The same figures and words whatever has changed since; `pin` says what they were taken of."""
        row = found_or_404(stored_found(report_id, user=request.user))
        return Response(stored_json(row, user=request.user))


class StoredReportTable(APIView):
    """The same for spreadsheets."""

    permission_classes = [SeesJudge]

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """The address says the format, whatever the header Accept says."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        operation_id="stored_report_csv",
        responses={(200, "text/csv"): OpenApiTypes.STR, **PROBLEMS},
    )
    def get(self, request: Request, report_id: int) -> HttpResponse:
        """One row a criterion, then dimensions, tiers and the whole; no cell is a formula."""
        row = found_or_404(stored_found(report_id, user=request.user))
        return table_file(stored_lines(row), HEAD, name=f"alignment-report-{row.pk}.csv")
