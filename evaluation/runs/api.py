"""Runs over HTTP."""

import re
from collections.abc import Callable
from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from common.api import FORBIDDEN, Permitted
from common.problems import FieldProblem, InputProblem
from evaluation.gateway.current import current_endpoint
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.judges.core.spec import JudgeChoice, choice_read
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run
from evaluation.runs.queries.redact_errors import tell_errors
from evaluation.runs.queries.runs import RunFilter, run_json, run_list, run_rows, runs_open_to
from evaluation.runs.serializers import ResumeInput, RunInput, RunOutput, StartedOutput, run_body
from evaluation.runs.services.control import run_cancel, run_launch, run_pause, run_resume
from evaluation.runs.services.runs import RunRefused
from labeling.models.chats import ChatSet
from labeling.models.people import User

WRONG = OpenApiResponse(description="What is wrong, by field.")
NOT_FOUND = OpenApiResponse(description="No such run, or no permission.")
REFUSED = OpenApiResponse(description="The run's state does not allow it.")
_OPTION = re.compile(r"--([a-z-]+): (.*)", re.DOTALL)


class SeesJudge(Permitted):
    """Needed to see runs."""

    permission = "labeling.see_judge"


class StartsRuns(Permitted):
    """Needed for whatever costs money."""

    permission = "labeling.start_runs"


class Refused(APIException):
    """The run is in a state that does not allow this."""

    status_code = status.HTTP_409_CONFLICT


class RunPages(CursorPagination):
    """Newest first, 100 a page."""

    page_size = 100
    ordering = "-id"


class RunList(APIView):
    """All runs."""

    def get_permissions(self) -> list[Any]:
        """Reading is seeing, posting is starting."""
        return [StartsRuns() if self.request.method == "POST" else SeesJudge()]

    @extend_schema(
        operation_id="runs",
        parameters=[
            OpenApiParameter(
                "purpose",
                OpenApiTypes.STR,
                enum=list(Run.Purpose.values),
                description="Those started for this alone; tries are listed only where they are asked for.",
            )
        ],
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="One page of runs"),
            403: FORBIDDEN,
            404: NOT_FOUND,
        },
    )
    def get(self, request: Request) -> Response:
        """One page of runs, newest first."""
        pages = RunPages()
        only = RunFilter(purpose=request.query_params.get("purpose", ""))
        runs = run_list(only, among=runs_open_to(request.user))
        page = pages.paginate_queryset(runs, request, view=self)
        found = list(page or [])
        tell_errors(found, user=request.user)
        return pages.get_paginated_response([run_json(row) for row in run_rows(found)])

    @extend_schema(
        operation_id="run_start",
        request=RunInput,
        responses={202: StartedOutput, 400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def post(self, request: Request) -> Response:
        """Plan a run; the workers carry it out."""
        given = RunInput(data=request.data)
        given.is_valid(raise_exception=True)
        run = _launched(given, cast(User, request.user))
        return Response(StartedOutput(run).data, status=status.HTTP_202_ACCEPTED)


class RunDetail(APIView):
    """One run."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="run", responses={200: RunOutput, 403: FORBIDDEN, 404: NOT_FOUND})
    def get(self, request: Request, run_id: int) -> Response:
        """How far it is and what it cost."""
        run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        tell_errors([run], user=request.user)
        return Response(run_body(run))


def _action(
    name: str, action: Callable[..., Run], body: type[Serializer[Any]] | None = None
) -> type[APIView]:
    """A view of its own for each action, so that the schema has an operation for each."""

    @extend_schema(
        operation_id=f"run_{name}",
        description=f"{name.title()} a run; the answer is the run as it is then.",
        request=body,
        responses={200: RunOutput, 403: FORBIDDEN, 404: NOT_FOUND, 409: REFUSED}
        | ({400: WRONG} if body else {}),
    )
    def post(self: APIView, request: Request, run_id: int) -> Response:
        run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        more: dict[str, Any] = {}
        if body is not None:
            given = body(data=request.data)
            given.is_valid(raise_exception=True)
            more = given.validated_data
        try:
            run = action(run=run, by=cast(User, request.user), **more)
        except RunRefused as refused:
            raise Refused(str(refused)) from refused
        except InputProblem as problem:
            raise ValidationError({"budget_usd": [str(problem)]}) from problem
        return Response(run_body(run))

    return type(f"Run{name.title()}", (APIView,), {"permission_classes": [StartsRuns], "post": post})


RunPause = _action("pause", run_pause)
RunResume = _action("resume", run_resume, ResumeInput)
RunCancel = _action("cancel", run_cancel)


def _launched(given: RunInput, by: User) -> Run:
    """Start what was asked for; whatever is wrong becomes a ValidationError that names its field."""
    body = given.validated_data
    chat_set = ChatSet.objects.select_related("rubric").filter(name=body["set"]).first()
    if chat_set is None:
        raise ValidationError({"set": [f"There is no chat set {body['set']!r}."]})
    try:
        judge = _judge(given.recipe(), body.get("profile", ""))
        endpoint = current_endpoint()
        return run_launch(chat_set=chat_set, judge=judge, run=given.choice(), endpoint=endpoint, by=by)
    except FieldProblem as problem:
        raise ValidationError({problem.field: [problem.message]}) from problem
    except (InputProblem, EmbeddedModelError) as problem:
        raise ValidationError(_by_field(str(problem))) from problem


def _judge(recipe: dict[str, Any], profile: str) -> JudgeChoice:
    """The profile's recipe, if one is named, with what was given besides."""
    if not profile:
        return choice_read(recipe)
    row = JudgeProfile.objects.filter(name=profile).first()
    if row is None:
        raise FieldProblem("profile", f"there is no judge profile {profile!r}")
    return choice_read(row.config | recipe)


def _by_field(message: str) -> dict[str, list[str]]:
    """Services name an option as the command line does."""
    option = _OPTION.fullmatch(message)
    return {option[1].replace("-", "_"): [option[2]]} if option else {"detail": [message]}
