"""API of runs."""

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from common.api import (
    INVALID,
    NO_ACCESS,
    ApiView,
    PagedList,
    PostPermission,
    QueryInput,
    choice_parameter,
    field_error,
    validated,
)
from common.problems import FieldProblem, InputProblem
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.judges.core.spec import JudgeSpec, spec_from_json
from evaluation.judges.queries.configs import endpoints_named
from evaluation.judges.queries.profiles import profile_recipe
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run
from evaluation.runs.queries.redact_errors import redact_errors
from evaluation.runs.queries.runs import RunFilter, run_json, run_list, run_rows, runs_open_to
from evaluation.runs.serializers import (
    ResumeInput,
    RunInput,
    RunOutput,
    RunRowOutput,
    StartedOutput,
    run_body,
)
from evaluation.runs.services.control import run_cancel, run_pause, run_resume
from evaluation.runs.services.runs import RunRefused
from evaluation.runs.services.starts import StartedRun, start_run
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.people.api.permissions import SeesJudge, StartsRuns

REFUSED = OpenApiResponse(description="Not allowed in the run's state.")
_OPTION = re.compile(r"--([a-z-]+): (.*)", re.DOTALL)


class Refused(APIException):
    """A 409: the run's state does not allow this."""

    status_code = status.HTTP_409_CONFLICT


class RunQuery(QueryInput):
    """Filters of runs."""

    purpose = choice_parameter(
        "purpose",
        Run.Purpose.values,
        help_text="Only runs with this purpose. Tries are listed only with `purpose=try`.",
    )


@extend_schema_view(
    get=extend_schema(
        operation_id="runs",
        responses={200: RunRowOutput(many=True), **NO_ACCESS},
    )
)
class RunList(PostPermission, PagedList[Run]):
    """One page of runs, newest first."""

    permission_classes = [SeesJudge]
    post_permission = StartsRuns
    query_classes: ClassVar = {"GET": RunQuery}
    serializer_class = RunRowOutput

    def get_queryset(self) -> QuerySet[Run]:
        """Return the runs that this user may see and the query selects."""
        only = RunFilter(purpose=self.query.get("purpose", ""))
        return run_list(only, among=runs_open_to(self.request.user))

    def results(self, page: Sequence[Run]) -> Any:
        """Return the runs with the keys of `list_runs`, without errors that the user may not see."""
        runs = list(page)
        redact_errors(runs, user=self.request.user)
        return [run_json(row) for row in run_rows(runs)]

    @extend_schema(
        operation_id="run_start",
        request=RunInput,
        responses={200: StartedOutput, 202: StartedOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request) -> Response:
        """Plan a run; workers process it. 200 if the same `client_id` has started it before."""
        body = RunInput(data=request.data)
        body.is_valid(raise_exception=True)
        started = _launch(body, cast(User, request.user))
        code = status.HTTP_200_OK if started.again else status.HTTP_202_ACCEPTED
        return Response(StartedOutput(started.run).data, status=code)


class RunDetail(ApiView):
    """One run."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="run", responses={200: RunOutput, **NO_ACCESS})
    def get(self, request: Request, run_id: int) -> Response:
        """The run's progress and cost."""
        run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        redact_errors([run], user=request.user)
        return Response(run_body(run))


def _action(
    name: str, action: Callable[..., Run], body: type[Serializer[Any]] | None = None
) -> type[ApiView]:
    """Return a view for one action, so that the schema has an operation for each."""

    @extend_schema(
        operation_id=f"run_{name}",
        description=f"{name.title()} a run. Returns the run in its new state.",
        request=body,
        responses={200: RunOutput, **NO_ACCESS, 409: REFUSED} | ({400: INVALID} if body else {}),
    )
    def post(self: ApiView, request: Request, run_id: int) -> Response:
        run = get_object_or_404(runs_open_to(request.user), pk=run_id)
        options = validated(body, request.data) if body else {}
        try:
            run = action(run=run, by=cast(User, request.user), **options)
        except RunRefused as refused:
            raise Refused(str(refused)) from refused
        except InputProblem as problem:
            raise ValidationError({"budget_usd": [str(problem)]}) from problem
        return Response(run_body(run))

    return type(f"Run{name.title()}", (ApiView,), {"permission_classes": [StartsRuns], "post": post})


RunPause = _action("pause", run_pause)
RunResume = _action("resume", run_resume, ResumeInput)
RunCancel = _action("cancel", run_cancel)


def _launch(body: RunInput, by: User) -> StartedRun:
    """Start the run, or return the one of the same request. Raises ValidationError, by field."""
    name, profile = body.validated_data["set"], body.validated_data.get("profile", "")
    chat_set = ChatSet.objects.select_related("rubric").filter(name=name).first()
    if chat_set is None:
        raise ValidationError({"set": [f"There is no chat set {name!r}."]})
    try:
        judge = _judge(body.recipe(), profile)
        return start_run(chat_set=chat_set, judge=judge, run=body.choice(by), profile=None, by=by)
    except FieldProblem as problem:
        raise field_error(problem) from problem
    except (InputProblem, EmbeddedModelError) as problem:
        raise ValidationError(_by_field(str(problem))) from problem


def _judge(recipe: dict[str, Any], profile: str) -> JudgeSpec:
    """Return the recipe: the profile's, if one is named, with the body's changes."""
    recipe = endpoints_named(recipe)
    if not profile:
        return spec_from_json(recipe)
    row = JudgeProfile.objects.filter(name=profile).first()
    if row is None:
        raise FieldProblem("profile", f"there is no judge profile {profile!r}")
    return spec_from_json(profile_recipe(row) | recipe)


def _by_field(message: str) -> dict[str, list[str]]:
    """Return the message by field: services name a field as the command's option."""
    option = _OPTION.fullmatch(message)
    return {option[1].replace("-", "_"): [option[2]]} if option else {"detail": [message]}
