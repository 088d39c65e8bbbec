"""API of a run's baselines."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.baselines.queries.baselines import Baselines
from alignment.baselines.services import baselines_ask, baselines_get
from alignment.comparison.api import ReportView
from alignment.comparison.queries.scope import Scope
from alignment.models.baselines import BaselineTraining
from common.api import INVALID, NO_ACCESS
from labeling.people.api.permissions import SeesJudge


class TrainingOutput(serializers.Serializer[Any]):
    """Training in progress: `done` of `total` criteria."""

    state = serializers.ChoiceField(choices=["open", "working"])
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    asked_at = serializers.DateTimeField()


class NotComputed(APIException):
    """A 503: the training failed."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = "The baselines could not be computed. See the worker's log for the reason."


class NotAsked(APIException):
    """A 409: a worker has to compute the baselines, and nobody has asked for them."""

    status_code = HTTPStatus.CONFLICT
    default_detail = "The baselines are not computed yet. POST to this address computes them."


RESPONSES: dict[int, Any] = {
    200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reference/api.md, Documents"),
    202: TrainingOutput,
    400: INVALID,
    **NO_ACCESS,
    503: OpenApiResponse(description="Could not be computed; retried an hour later."),
}


class RunBaselines(ReportView):
    """A run's judge compared with the majority class and a bag of words."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="run_baselines",
        responses=RESPONSES | {409: OpenApiResponse(description="Not computed yet: POST to this address.")},
    )
    def get(self, request: Request, run_id: int) -> Response:
        """The comparison. 202 while a worker computes it: repeat the request later."""
        return self._answer(run_id, baselines_get)

    @extend_schema(operation_id="run_baselines_compute", request=None, responses=RESPONSES)
    def post(self, request: Request, run_id: int) -> Response:
        """Compute the comparison and store it; a worker does it where it takes long."""
        return self._answer(run_id, baselines_ask)

    def _answer(self, run_id: int, read: Callable[[Scope], Baselines]) -> Response:
        run = self.run(run_id)
        baselines = read(self.scope(run.chat_set, run))
        if baselines.reason:
            raise ValidationError({"against": baselines.reason})
        if baselines.body is not None:
            return Response(baselines.body)
        if baselines.training is None:
            raise NotAsked
        if baselines.training.state == BaselineTraining.State.FAILED:
            raise NotComputed
        return Response(TrainingOutput(baselines.training).data, status=HTTPStatus.ACCEPTED)
