"""The baselines of a run over HTTP."""

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
from alignment.comparison.queries.answers import UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.models.baselines import BaselineTraining
from alignment.reports.api.reports import REPORT_PARAMETERS
from common.api import FORBIDDEN, NOT_FOUND, WRONG
from evaluation.runs.api import SeesJudge
from evaluation.runs.queries.runs import runs_open_to


class TrainingOutput(serializers.Serializer[Any]):
    """What is waited for: `done` of `total` criteria are learned."""

    state = serializers.ChoiceField(choices=["open", "working"])
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    asked_at = serializers.DateTimeField()


class NotComputed(APIException):
    """503: the training has failed."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = "The baselines could not be computed; the worker's log says why."


class RunBaselines(APIView):
    """A run's judge beside the majority class and a bag of words."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="run_baselines",
        parameters=REPORT_PARAMETERS,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reports.md"),
            202: TrainingOutput,
            400: WRONG,
            403: FORBIDDEN,
            404: NOT_FOUND,
            503: OpenApiResponse(description="They could not be computed; asked again an hour later."),
        },
    )
    def get(self, request: Request, run_id: int) -> Response:
        """The comparison; 202 while a worker computes it: ask again."""
        run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        scope = requested_scope(run.chat_set, run, request.query_params, request.user)
        if scope is None:
            raise Http404
        try:
            found = baselines_get(scope)
        except UnknownRater as error:
            raise Http404 from error
        if found.reason:
            raise ValidationError({"against": found.reason})
        if found.training is None:
            return Response(found.body)
        if found.training.state == BaselineTraining.State.FAILED:
            raise NotComputed
        return Response(TrainingOutput(found.training).data, status=HTTPStatus.ACCEPTED)
