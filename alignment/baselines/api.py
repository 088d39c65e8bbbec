"""API of a run's baselines."""

from http import HTTPStatus
from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.baselines.services import baselines_get
from alignment.comparison.api import REPORT_PARAMETERS
from alignment.comparison.queries.answers import UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.models.baselines import BaselineTraining
from common.access import found_or_404
from common.api import INVALID, NO_ACCESS
from evaluation.runs.queries.runs import runs_open_to
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


class RunBaselines(APIView):
    """A run's judge compared with the majority class and a bag of words."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="run_baselines",
        parameters=REPORT_PARAMETERS,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reference/api.md, Documents"),
            202: TrainingOutput,
            400: INVALID,
            **NO_ACCESS,
            503: OpenApiResponse(description="Could not be computed; retried an hour later."),
        },
    )
    def get(self, request: Request, run_id: int) -> Response:
        """The comparison. 202 while a worker computes it: repeat the request later."""
        run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        scope = found_or_404(requested_scope(run.chat_set, run, request.query_params, request.user))
        try:
            baselines = baselines_get(scope)
        except UnknownRater as error:
            raise Http404 from error
        if baselines.reason:
            raise ValidationError({"against": baselines.reason})
        if baselines.training is None:
            return Response(baselines.body)
        if baselines.training.state == BaselineTraining.State.FAILED:
            raise NotComputed
        return Response(TrainingOutput(baselines.training).data, status=HTTPStatus.ACCEPTED)
