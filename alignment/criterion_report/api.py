"""API of the report on one criterion of a run."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.comparison.api import ReportView
from alignment.criterion_report.queries.report import criterion_report
from common.access import found_or_404
from common.api import PROBLEMS
from labeling.people.api.permissions import SeesJudge


class CriterionReport(ReportView):
    """Criterion report of a run."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="run_criterion_report",
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reference/api.md, Documents"),
            **PROBLEMS,
        },
    )
    def get(self, request: Request, run_id: int, key: str) -> Response:
        """All statistics of one criterion: by topic and length, by rater, probabilities and versions."""
        run = self.run(run_id)
        scope = self.scope(run.chat_set, run)
        return Response(found_or_404(criterion_report(scope, key, user=request.user)).document)
