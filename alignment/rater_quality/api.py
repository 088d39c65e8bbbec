"""API of rater quality, for leads."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.rater_quality.queries.answers import scope_labels
from alignment.rater_quality.queries.scope import quality_scope
from alignment.rater_quality.queries.table import quality_document
from common.access import found_or_404
from common.api import NO_ACCESS
from labeling.people.api.permissions import ManagesLabeling

SCHEMA = extend_schema(
    parameters=[OpenApiParameter("criterion", OpenApiTypes.STR, description="only this criterion, by key")],
    responses={
        200: OpenApiResponse(
            OpenApiTypes.OBJECT, description="Raters, pairs and criteria with n, value, low and high"
        ),
        **NO_ACCESS,
    },
)


class SetQuality(APIView):
    """Rater quality in a chat set."""

    permission_classes = [ManagesLabeling]

    @SCHEMA
    def get(self, request: Request, set_id: int) -> Response:
        """Agreement by rater, pair and criterion, as on the pages."""
        return _answer(request, set_id=set_id)


class JobQuality(APIView):
    """Rater quality in a labelling job."""

    permission_classes = [ManagesLabeling]

    @SCHEMA
    def get(self, request: Request, job_id: int) -> Response:
        """Agreement by rater, pair and criterion, as on the pages."""
        return _answer(request, job_id=job_id)


def _answer(request: Request, *, set_id: int | None = None, job_id: int | None = None) -> Response:
    scope = found_or_404(quality_scope(query=request.query_params, set_id=set_id, job_id=job_id))
    return Response(quality_document(scope, scope_labels(scope)))
