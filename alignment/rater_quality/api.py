"""API of rater quality, for leads."""

from typing import ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.rater_quality.queries.answers import scope_labels
from alignment.rater_quality.queries.scope import quality_scope
from alignment.rater_quality.queries.table import quality_document
from common.access import found_or_404
from common.api import NO_ACCESS, ApiView, QueryInput, row_parameter
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import ManagesLabeling

SCHEMA = extend_schema(
    responses={
        200: OpenApiResponse(
            OpenApiTypes.OBJECT, description="Raters, pairs and criteria with n, value, low and high"
        ),
        **NO_ACCESS,
    },
)


class QualityQuery(QueryInput):
    """The criterion to report on."""

    criterion = row_parameter("criterion", Criterion.objects.all(), "key", help_text="Key of a criterion.")


class QualityView(ApiView):
    """A route on the quality of raters."""

    permission_classes = [ManagesLabeling]
    query_classes: ClassVar = {"GET": QualityQuery}


class SetQuality(QualityView):
    """Rater quality in a chat set."""

    @SCHEMA
    def get(self, request: Request, set_id: int) -> Response:
        """Agreement by rater, pair and criterion, as on the pages."""
        return _answer(request, set_id=set_id)


class JobQuality(QualityView):
    """Rater quality in a labelling job."""

    @SCHEMA
    def get(self, request: Request, job_id: int) -> Response:
        """Agreement by rater, pair and criterion, as on the pages."""
        return _answer(request, job_id=job_id)


def _answer(request: Request, *, set_id: int | None = None, job_id: int | None = None) -> Response:
    scope = found_or_404(quality_scope(query=request.query_params, set_id=set_id, job_id=job_id))
    return Response(quality_document(scope, scope_labels(scope)))
