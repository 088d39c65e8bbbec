"""The report on one criterion of a run over HTTP."""

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.comparison.queries.answers import UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.criterion_report.queries.report import criterion_report
from alignment.reports.api.reports import REPORT_PARAMETERS
from common.api import FORBIDDEN
from evaluation.models.runs import Run
from evaluation.runs.api import SeesJudge
from evaluation.runs.queries.runs import runs_open_to


class CriterionReport(APIView):
    """One criterion of a run in full."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="run_criterion_report",
        parameters=REPORT_PARAMETERS,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reports.md"),
            403: FORBIDDEN,
            404: OpenApiResponse(description="No such run, criterion or rater, or no permission"),
        },
    )
    def get(self, request: Request, run_id: int, key: str) -> Response:
        """Statistics, parts, raters, stated probabilities and versions."""
        run: Run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        scope = requested_scope(run.chat_set, run, request.query_params, request.user)
        try:
            found = criterion_report(scope, key, user=request.user) if scope else None
        except UnknownRater as error:
            raise Http404 from error
        if found is None:
            raise Http404
        return Response(found.document)
