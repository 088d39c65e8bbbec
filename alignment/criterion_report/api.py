"""API of the report on one criterion of a run."""

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.comparison.api import REPORT_PARAMETERS
from alignment.comparison.queries.answers import UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.criterion_report.queries.report import criterion_report
from common.access import found_or_404
from common.api import FORBIDDEN
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import runs_open_to
from labeling.people.api.permissions import SeesJudge


class CriterionReport(APIView):
    """Criterion report of a run."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="run_criterion_report",
        parameters=REPORT_PARAMETERS,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reference/api.md, Documents"),
            403: FORBIDDEN,
            404: OpenApiResponse(description="Run, criterion or rater not found, or no permission."),
        },
    )
    def get(self, request: Request, run_id: int, key: str) -> Response:
        """All statistics of one criterion: by topic and length, by rater, probabilities and versions."""
        run: Run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        scope = found_or_404(requested_scope(run.chat_set, run, request.query_params, request.user))
        try:
            report = found_or_404(criterion_report(scope, key, user=request.user))
        except UnknownRater as error:
            raise Http404 from error
        return Response(report.document)
