"""Regression tests over HTTP."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from alignment.comparison.queries.disclosure import tell
from alignment.models.regressions import RegressionTest
from alignment.regression.queries.page import regression_whole
from alignment.regression.queries.test_list import RegressionFilter, regression_rows
from alignment.regression.serializers import (
    EstimateOutput,
    RegressionInput,
    RegressionOutput,
    RegressionRowOutput,
    ReleaseInput,
    regression_body,
    regression_row,
)
from alignment.regression.services.control import regression_pause, regression_resume
from alignment.regression.services.releases import ReleaseRefused, may_release, release
from alignment.regression.services.starts import (
    RegressionRequest,
    regression_estimate,
    regression_outlook,
    regression_start,
)
from alignment.regression.services.tests import RegressionRefused, regression_cancel
from alignment.regression.worker import runs_of
from common.api import NOT_FOUND, PROBLEMS, WRONG, WritesTexts, problem
from common.problems import FieldProblem, InputProblem
from evaluation.runs.api import SeesJudge
from evaluation.runs.queries.redact_errors import tell_errors
from evaluation.runs.serializers import ResumeInput
from evaluation.runs.services.runs import RunRefused
from labeling.models.people import User

T = TypeVar("T")


class RegressionPages(CursorPagination):
    """Newest first, 100 a page."""

    page_size = 100
    ordering = "-id"


class RegressionList(APIView):
    """All regression tests."""

    def get_permissions(self) -> list[Any]:
        """Reading is seeing; starting is for those who write prompts."""
        return [WritesTexts() if self.request.method == "POST" else SeesJudge()]

    @extend_schema(
        operation_id="regressions",
        parameters=[
            OpenApiParameter("criterion", OpenApiTypes.STR),
            OpenApiParameter("state", OpenApiTypes.STR),
        ],
        responses={
            200: OpenApiResponse(RegressionRowOutput(many=True), description="One page of tests"),
            403: PROBLEMS[403],
            404: NOT_FOUND,
        },
    )
    def get(self, request: Request) -> Response:
        """One page of tests, newest first."""
        pages = RegressionPages()
        query = request.query_params
        only = RegressionFilter(query.get("criterion", ""), query.get("state", ""))
        page = pages.paginate_queryset(regression_rows(only), request, view=self) or []
        tell(page, user=request.user)
        rows = RegressionRowOutput([regression_row(test) for test in page], many=True)
        return pages.get_paginated_response(rows.data)

    @extend_schema(
        operation_id="regression_start",
        request=RegressionInput,
        responses={
            200: RegressionOutput,
            202: RegressionOutput,
            400: WRONG,
            403: PROBLEMS[403],
            404: NOT_FOUND,
        },
    )
    def post(self, request: Request) -> Response:
        """Start a test; the workers carry it out. 200 where the same `client_id` has started it before."""
        user = cast(User, request.user)
        started = _tried(lambda: regression_start(_wish(request), by=user))
        code = status.HTTP_200_OK if started.again else status.HTTP_202_ACCEPTED
        return Response(_body(started.test.pk, user), status=code)


class RegressionEstimate(APIView):
    """What a test would take."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="regression_estimate",
        request=RegressionInput,
        responses={200: EstimateOutput, 400: WRONG, 403: PROBLEMS[403], 404: NOT_FOUND},
    )
    def post(self, request: Request) -> Response:
        """Calls and cost of both sides, and what the labels let the gate see; nothing is sent."""
        wish = _wish(request)
        found = _tried(lambda: regression_estimate(wish))
        outlook = regression_outlook(wish, found.criteria, by=cast(User, request.user))
        cost = found.cost_usd
        return Response(
            EstimateOutput(
                {
                    "calls": found.calls,
                    "reused": found.reused,
                    "confirming_calls": found.confirming,
                    "cost_usd": None if cost is None else float(cost),
                    "fits_budget": found.fits_budget,
                    "seconds": found.seconds,
                    "runs": {name: run.as_json() for name, run in found.runs},
                    "labelled": [
                        {
                            "criterion": row.criterion.key,
                            "true": row.true,
                            "false": row.false,
                            "blocks": row.blocks,
                        }
                        for row in outlook.labelled
                    ],
                    "sight": outlook.power,
                    "opens_holdout": outlook.opens_holdout,
                    "opened": outlook.opened,
                }
            ).data
        )


class RegressionDetail(APIView):
    """One test."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="regression", responses={200: RegressionOutput, 403: PROBLEMS[403], 404: NOT_FOUND}
    )
    def get(self, request: Request, test_id: int) -> Response:
        """What it found, once it is done, and how far it is."""
        return Response(_body(test_id, cast(User, request.user)))


def _action(
    name: str, action: Callable[..., object], body: type[Serializer[Any]] | None = None
) -> type[APIView]:
    """A view of its own for each action, so that the schema has an operation for each."""

    @extend_schema(
        operation_id=f"regression_{name}",
        description=f"{name.title()} a test; the answer is the test as it is then.",
        request=body,
        responses={200: RegressionOutput, **PROBLEMS} | ({400: WRONG} if body else {}),
    )
    def post(self: APIView, request: Request, test_id: int) -> Response:
        test, user = get_object_or_404(RegressionTest, pk=test_id), cast(User, request.user)
        more: dict[str, Any] = {}
        if body is not None:
            given = body(data=request.data)
            given.is_valid(raise_exception=True)
            more = given.validated_data
        try:
            action(test=test, by=user, **more)
        except (RegressionRefused, RunRefused) as refused:
            raise problem("refused", str(refused)) from refused
        except InputProblem as wrong:
            raise ValidationError({"budget_usd": [str(wrong)]}) from wrong
        return Response(_body(test_id, user))

    return type(f"Regression{name.title()}", (APIView,), {"permission_classes": [WritesTexts], "post": post})


RegressionPause = _action("pause", regression_pause)
RegressionResume = _action("resume", regression_resume, ResumeInput)
RegressionCancel = _action("cancel", regression_cancel)


class RegressionRelease(APIView):
    """Releasing what was tested."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="regression_release",
        request=ReleaseInput,
        responses={200: RegressionOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, test_id: int) -> Response:
        """Put the candidate in the champion's place, for runs to come."""
        test, user = get_object_or_404(regression_whole(), pk=test_id), cast(User, request.user)
        if not may_release(test=test, user=user):
            raise Http404
        given = ReleaseInput(data=request.data)
        given.is_valid(raise_exception=True)
        try:
            release(test=test, by=user, **given.validated_data)
        except ReleaseRefused as refused:
            raise problem("refused", str(refused)) from refused
        return Response(_body(test_id, user))


def _body(test_id: int, user: User) -> Any:
    """The test as this user may know it."""
    test = get_object_or_404(regression_whole(), pk=test_id)
    tell([test], user=user)
    tell_errors(runs_of(test), user=user)
    return RegressionOutput(regression_body(test)).data


def _wish(request: Request) -> RegressionRequest:
    given = RegressionInput(data=request.data)
    given.is_valid(raise_exception=True)
    try:
        return given.wish(cast(User, request.user))
    except FieldProblem as wrong:
        raise ValidationError({wrong.field: [wrong.message]}) from wrong


def _tried(do: Callable[[], T]) -> T:
    """What it answers; whatever is wrong with the choice becomes a ValidationError."""
    try:
        return do()
    except InputProblem as wrong:
        raise ValidationError({"detail": [str(wrong)]}) from wrong
