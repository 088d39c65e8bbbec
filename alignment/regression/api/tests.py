"""API of regression tests."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar, cast

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from alignment.comparison.queries.disclosure import hide_small_counts
from alignment.models.regressions import RegressionTest
from alignment.regression.queries.page import regression_tests
from alignment.regression.queries.test_list import STATES, RegressionFilter, regression_rows
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
from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    ApiView,
    PagedList,
    PostPermission,
    QueryInput,
    choice_parameter,
    field_error,
    problem,
    row_parameter,
    validated,
)
from common.problems import FieldProblem, InputProblem
from evaluation.runs.queries.redact_errors import redact_errors
from evaluation.runs.serializers import ResumeInput
from evaluation.runs.services.runs import RunRefused
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import SeesJudge, WritesTexts

T = TypeVar("T")


class RegressionQuery(QueryInput):
    """Filters of tests. Tests of a whole judge belong to every criterion."""

    criterion = row_parameter("criterion", Criterion.objects.all(), "key", help_text="Key of a criterion.")
    state = choice_parameter("state", [state for state, _ in STATES])


@extend_schema_view(
    get=extend_schema(
        operation_id="regressions",
        responses={200: RegressionRowOutput(many=True), **NO_ACCESS},
    )
)
class RegressionList(PostPermission, PagedList[RegressionTest]):
    """One page of regression tests, newest first."""

    permission_classes = [SeesJudge]
    post_permission = WritesTexts
    query_classes: ClassVar = {"GET": RegressionQuery}
    serializer_class = RegressionRowOutput

    def get_queryset(self) -> Any:
        """Return the tests that the query selects."""
        criterion = self.query.get("criterion")
        key = criterion.key if criterion else ""
        return regression_rows(RegressionFilter(key, self.query.get("state", "")))

    def results(self, page: Sequence[RegressionTest]) -> Any:
        """Return the tests, with the results that this user may see."""
        hide_small_counts(page, user=self.request.user)
        return super().results([regression_row(test) for test in page])

    @extend_schema(
        operation_id="regression_start",
        request=RegressionInput,
        responses={200: RegressionOutput, 202: RegressionOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request) -> Response:
        """Start a test; workers process it. 200 if the same `client_id` has started it before."""
        user = cast(User, request.user)
        started = _valid(lambda: regression_start(_wish(request), by=user))
        code = status.HTTP_200_OK if started.again else status.HTTP_202_ACCEPTED
        return Response(_body(started.test.pk, user), status=code)


class RegressionEstimate(ApiView):
    """Estimate of a test."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="regression_estimate",
        request=RegressionInput,
        responses={200: EstimateOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request) -> Response:
        """Calls and cost of both judges, and the power that the labels allow. Sends no requests."""
        wish = _wish(request)
        estimate = _valid(lambda: regression_estimate(wish))
        outlook = regression_outlook(wish, estimate.criteria, by=cast(User, request.user))
        cost = estimate.cost_usd
        return Response(
            EstimateOutput(
                {
                    "calls": estimate.calls,
                    "reused": estimate.reused,
                    "confirming_calls": estimate.confirming,
                    "cost_usd": None if cost is None else float(cost),
                    "fits_budget": estimate.fits_budget,
                    "seconds": estimate.seconds,
                    "runs": {name: run.as_json() for name, run in estimate.runs},
                    "labelled": [
                        {
                            "criterion": row.criterion.key,
                            "true": row.true,
                            "false": row.false,
                            "blocks": row.blocks,
                            "more_labels": row.more,
                        }
                        for row in outlook.labelled
                    ],
                    "sight": outlook.power,
                    "opens_holdout": outlook.opens_holdout,
                    "opened": outlook.opened,
                }
            ).data
        )


class RegressionDetail(ApiView):
    """One test."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="regression", responses={200: RegressionOutput, **NO_ACCESS})
    def get(self, request: Request, test_id: int) -> Response:
        """The test's progress, and its results when it is done."""
        return Response(_body(test_id, cast(User, request.user)))


def _action(
    name: str, action: Callable[..., object], body: type[Serializer[Any]] | None = None
) -> type[ApiView]:
    """Return a view for one action, so that the schema has an operation for each."""

    @extend_schema(
        operation_id=f"regression_{name}",
        description=f"{name.title()} a test. Returns the test in its new state.",
        request=body,
        responses={200: RegressionOutput, **PROBLEMS} | ({400: INVALID} if body else {}),
    )
    def post(self: ApiView, request: Request, test_id: int) -> Response:
        test, user = get_object_or_404(RegressionTest, pk=test_id), cast(User, request.user)
        options = validated(body, request.data) if body else {}
        try:
            action(test=test, by=user, **options)
        except (RegressionRefused, RunRefused) as refused:
            raise problem("refused", str(refused)) from refused
        except InputProblem as wrong:
            raise ValidationError({"budget_usd": [str(wrong)]}) from wrong
        return Response(_body(test_id, user))

    return type(f"Regression{name.title()}", (ApiView,), {"permission_classes": [WritesTexts], "post": post})


RegressionPause = _action("pause", regression_pause)
RegressionResume = _action("resume", regression_resume, ResumeInput)
RegressionCancel = _action("cancel", regression_cancel)


class RegressionRelease(ApiView):
    """Release of a tested candidate."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="regression_release",
        request=ReleaseInput,
        responses={200: RegressionOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, test_id: int) -> Response:
        """Make the candidate the champion of future runs."""
        test, user = get_object_or_404(regression_tests(), pk=test_id), cast(User, request.user)
        if not may_release(test=test, user=user):
            raise Http404
        body = validated(ReleaseInput, request.data)
        try:
            release(test=test, by=user, **body)
        except ReleaseRefused as refused:
            raise problem("refused", str(refused)) from refused
        return Response(_body(test_id, user))


def _body(test_id: int, user: User) -> Any:
    """Return the test, with the results that this user may see. Raises Http404."""
    test = get_object_or_404(regression_tests(), pk=test_id)
    hide_small_counts([test], user=user)
    redact_errors(runs_of(test), user=user)
    return RegressionOutput(regression_body(test)).data


def _wish(request: Request) -> RegressionRequest:
    """Return the test that the body describes. Raises ValidationError, by field."""
    body = RegressionInput(data=request.data)
    body.is_valid(raise_exception=True)
    try:
        return body.wish(cast(User, request.user))
    except FieldProblem as wrong:
        raise field_error(wrong) from wrong


def _valid(service: Callable[[], T]) -> T:
    """Return the service's result. Raises ValidationError for its InputProblem."""
    try:
        return service()
    except InputProblem as wrong:
        raise ValidationError({"detail": [str(wrong)]}) from wrong
