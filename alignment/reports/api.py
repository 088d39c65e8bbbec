"""API of the alignment report: of a run, of a chat set, and stored ones as document and table."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar, cast

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.comparison.api import ReportView
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.csv_rows import HEAD
from alignment.reports.queries.chat_lists import listed
from alignment.reports.queries.reports import report_json
from alignment.reports.queries.shown import report_now
from alignment.reports.queries.stored import readable_report, stored_csv_rows, stored_json
from alignment.reports.services import ReportRefused, report_share
from common.access import found_or_404
from common.api import NO_ACCESS, PROBLEMS, ApiView, DownloadView
from common.downloads import table_file
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.people.api.permissions import SeesJudge
from labeling.people.services.audit import audit

F = TypeVar("F", bound=Callable[..., Any])


def report_schema(operation: str) -> Callable[[F], F]:
    """Return the schema of a request that reads a report."""
    document = OpenApiResponse(OpenApiTypes.OBJECT, description="The document of `alignment_report --json`")
    return extend_schema(operation_id=operation, responses={200: document, **PROBLEMS})


def share_schema(operation: str) -> Callable[[F], F]:
    """Return the schema of a request that stores a report."""
    return extend_schema(
        operation_id=operation,
        request=None,
        responses={
            201: OpenApiResponse(OpenApiTypes.OBJECT, description="The report, with its `id`"),
            202: OpenApiResponse(description="A worker computes the report. Repeat the request later."),
            400: OpenApiResponse(description="The run is in progress, or there are no chats."),
            **NO_ACCESS,
        },
    )


class RunReport(ReportView):
    """Alignment report of a run."""

    permission_classes = [SeesJudge]

    @report_schema("run_report")
    def get(self, request: Request, run_id: int) -> Response:
        """Agreement of a run's judge with the raters, by criterion."""
        run = self.run(run_id)
        return _report(self.scope(run.chat_set, run), request)

    @share_schema("run_report_share")
    def post(self, request: Request, run_id: int) -> Response:
        """Store the report under an id that stays. 202 while a worker computes it: repeat the request."""
        run = self.run(run_id)
        return _share(self.scope(run.chat_set, run), request)


class SetReport(ReportView):
    """Agreement between the raters of a chat set."""

    permission_classes = [SeesJudge]

    @report_schema("set_report")
    def get(self, request: Request, set_id: int) -> Response:
        """Agreement between the raters of a chat set, by criterion."""
        return _report(self.scope(get_object_or_404(ChatSet, pk=set_id), None), request)

    @share_schema("set_report_share")
    def post(self, request: Request, set_id: int) -> Response:
        """Store the report under an id that stays."""
        return _share(self.scope(get_object_or_404(ChatSet, pk=set_id), None), request)


class StoredReport(ApiView):
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
        audit(actor=cast(User, request.user), verb="report exported", obj=row, format="csv")
        return table_file(stored_csv_rows(row), HEAD, name=f"alignment-report-{row.pk}.csv")


def _report(scope: Scope, request: Request) -> Response:
    return Response(_visible(report_now(scope), scope, request))


def _share(scope: Scope, request: Request) -> Response:
    try:
        row = report_share(scope)
    except ReportRefused as problem:
        raise ValidationError({"run": str(problem)}) from problem
    if row is None:
        return Response({"state": "open"}, status=HTTPStatus.ACCEPTED)
    return Response(_visible(report_json(row, scope), scope, request), status=HTTPStatus.CREATED)


def _visible(report: dict[str, Any], scope: Scope, request: Request) -> dict[str, Any]:
    """Return the report without the disagreements in chats that the user may not see."""
    rows = report["disagreements"]
    allowed = set(listed([row["chat_id"] for row in rows], scope, request.user))
    return report | {"disagreements": [row for row in rows if row["chat_id"] in allowed]}
