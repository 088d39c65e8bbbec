"""The quality of labels over HTTP, for leads."""

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.rater_quality.queries.answers import scope_labels
from alignment.rater_quality.queries.scope import quality_scope
from alignment.rater_quality.queries.table import quality_document
from common.api import FORBIDDEN, NOT_FOUND, ManagesLabeling

SCHEMA = extend_schema(
    parameters=[OpenApiParameter("criterion", OpenApiTypes.STR, description="one criterion only, by key")],
    responses={
        200: OpenApiResponse(
            OpenApiTypes.OBJECT, description="Raters, pairs and criteria with n, value, low and high"
        ),
        403: FORBIDDEN,
        404: NOT_FOUND,
    },
)


class SetQuality(APIView):
    """Of the labels on a chat set."""

    permission_classes = [ManagesLabeling]

    @SCHEMA
    def get(self, request: Request, set_id: int) -> Response:
        """The numbers of the quality pages."""
        return _answer(request, set_id=set_id)


class JobQuality(APIView):
    """Of the labels given in a labelling job."""

    permission_classes = [ManagesLabeling]

    @SCHEMA
    def get(self, request: Request, job_id: int) -> Response:
        """The numbers of the quality pages."""
        return _answer(request, job_id=job_id)


def _answer(request: Request, *, set_id: int | None = None, job_id: int | None = None) -> Response:
    scope = quality_scope(query=request.query_params, set_id=set_id, job_id=job_id)
    if scope is None:
        raise Http404
    return Response(quality_document(scope, scope_labels(scope)))
