"""API of monitoring: the documents behind the pages."""

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.monitoring.core.series import Step
from alignment.monitoring.queries.criterion import criterion_production
from alignment.monitoring.queries.document import criterion_document, overview_document, window_json
from alignment.monitoring.queries.judged import WEEKS, Window, window_of
from alignment.monitoring.queries.overview import overview
from common.api import INVALID, NO_ACCESS, ApiView, QueryInput, choice_parameter
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import SeesJudge


class MonitoringQuery(QueryInput):
    """The days, up to the newest judged one."""

    step = choice_parameter("step", [step.value for step in Step], help_text="Default: week.")
    weeks = choice_parameter(
        "weeks", [str(number) for number in WEEKS], help_text="Default: 12, and 4 by day."
    )


RESPONSES: dict[int, Any] = {
    200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reference/api.md, Documents"),
    400: INVALID,
    **NO_ACCESS,
}


class MonitoringView(ApiView):
    """A route on the days that the query selects."""

    permission_classes = [SeesJudge]
    query_classes: ClassVar = {"GET": MonitoringQuery}

    def window(self) -> Window | None:
        """Return the days; None if nothing is judged."""
        return window_of(self.query.get("step", ""), self.query.get("weeks", ""), user=self.request.user)


class Monitoring(MonitoringView):
    """Quality in production."""

    @extend_schema(operation_id="monitoring", responses=RESPONSES)
    def get(self, request: Request) -> Response:
        """Rates of criteria, dimensions and session scores over time, coverage and cost."""
        window = self.window()
        return Response(overview_document(overview(window, user=request.user) if window else None))


class MonitoringCriterion(MonitoringView):
    """One criterion in production."""

    @extend_schema(operation_id="monitoring_criterion", responses=RESPONSES)
    def get(self, request: Request, criterion_key: str) -> Response:
        """Rates over time, by topic and by variant."""
        row, window = get_object_or_404(Criterion, key=criterion_key), self.window()
        if window is None:
            empty: dict[str, Any] = {name: [] for name in ("points", "marks", "topics", "variants")}
            return Response({**window_json(None), "key": row.key, **empty})
        return Response(criterion_document(criterion_production(window, row, user=request.user)))
