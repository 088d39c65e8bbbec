"""API of sample plans."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import INVALID, NO_ACCESS, ApiView, PagedList, field_error
from common.problems import FieldProblem
from evaluation.nightly.queries import night_rows, plan_preview, plan_rows
from evaluation.nightly.serializers import (
    NightOutput,
    PlanInput,
    PlanOutput,
    PreviewOutput,
    judge_choice,
    night_json,
    plan_body,
    plan_settings,
    preview_json,
    stored_values,
)
from evaluation.nightly.services import nightly_plan_save
from labeling.models.people import User
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.people.api.permissions import StartsRuns
from labeling.sampling.queries import size_of
from labeling.sampling.services import plan_pause, plan_resume


@extend_schema_view(
    get=extend_schema(operation_id="sample_plans", responses={200: PlanOutput(many=True), **NO_ACCESS})
)
class PlanList(PagedList[SamplePlan]):
    """One page of sample plans, newest first."""

    permission_classes = [StartsRuns]
    serializer_class = PlanOutput

    def get_queryset(self) -> QuerySet[SamplePlan]:
        """Return every plan."""
        return _plans()

    def results(self, page: Sequence[SamplePlan]) -> Any:
        """Return the plans with their judge and last night."""
        return [plan_body(row) for row in plan_rows(list(page))]

    @extend_schema(
        operation_id="sample_plan_create",
        request=PlanInput,
        responses={201: PlanOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request) -> Response:
        """Create a plan. It samples today's chats tonight."""
        body = PlanInput(data=request.data)
        body.is_valid(raise_exception=True)
        plan = _save(request, dict(body.validated_data), None)
        return Response(_body(plan.pk), status=status.HTTP_201_CREATED)


class PlanDetail(ApiView):
    """One sample plan."""

    permission_classes = [StartsRuns]

    @extend_schema(operation_id="sample_plan", responses={200: PlanOutput, **NO_ACCESS})
    def get(self, request: Request, plan_id: int) -> Response:
        """The plan with its judge and last night."""
        return Response(_body(plan_id))

    @extend_schema(
        operation_id="sample_plan_change",
        request=PlanInput(partial=True),
        responses={200: PlanOutput, 400: INVALID, **NO_ACCESS},
    )
    def patch(self, request: Request, plan_id: int) -> Response:
        """Change a plan. The next night uses it; fields that are left out stay as they are."""
        plan = get_object_or_404(_plans(), pk=plan_id)
        body = PlanInput(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        _save(request, stored_values(plan) | dict(body.validated_data), plan)
        return Response(_body(plan_id))


def _action(name: str, action: Callable[..., SamplePlan], about: str) -> type[ApiView]:
    """Return a view for one action, so that the schema has an operation for each."""

    @extend_schema(
        operation_id=f"sample_plan_{name}",
        description=about,
        request=None,
        responses={200: PlanOutput, **NO_ACCESS},
    )
    def post(self: ApiView, request: Request, plan_id: int) -> Response:
        action(plan=get_object_or_404(SamplePlan, pk=plan_id), by=cast(User, request.user))
        return Response(_body(plan_id))

    return type(f"Plan{name.title()}", (ApiView,), {"permission_classes": [StartsRuns], "post": post})


PlanPause = _action("pause", plan_pause, "Sample no further night. Repeating it changes nothing.")
PlanResume = _action("resume", plan_resume, "Sample again, from today's chats on.")


class PlanPreview(ApiView):
    """What a plan would have sampled yesterday."""

    permission_classes = [StartsRuns]

    @extend_schema(operation_id="sample_plan_preview", responses={200: PreviewOutput, **NO_ACCESS})
    def get(self, request: Request, plan_id: int) -> Response:
        """The allocation of the plan on yesterday's chats that are in no sample and no chat set."""
        plan = get_object_or_404(SamplePlan, pk=plan_id)
        preview = plan_preview(size=size_of(plan), audit_share=plan.audit_share, plan=plan)
        return Response(PreviewOutput(preview_json(preview)).data)


@extend_schema_view(
    get=extend_schema(operation_id="sample_nights", responses={200: NightOutput(many=True), **NO_ACCESS})
)
class NightList(PagedList[SampleDraw]):
    """One page of a plan's nights, the last one first."""

    permission_classes = [StartsRuns]
    serializer_class = NightOutput
    page_order = "-day"

    def get_queryset(self) -> QuerySet[SampleDraw]:
        """Return the plan's nights."""
        return get_object_or_404(SamplePlan, pk=self.kwargs["plan_id"]).draws.all()

    def results(self, page: Sequence[SampleDraw]) -> Any:
        """Return the nights with their run and job."""
        rows = night_rows(SampleDraw.objects.filter(pk__in=[draw.pk for draw in page]))
        return NightOutput([night_json(row) for row in rows], many=True).data


def _plans() -> QuerySet[SamplePlan]:
    plans = SamplePlan.objects.select_related("rubric", "group")
    return plans.prefetch_related("raters", "criteria")


def _body(plan_id: int) -> dict[str, Any]:
    return plan_body(plan_rows([get_object_or_404(_plans(), pk=plan_id)])[0])


def _save(request: Request, values: dict[str, Any], plan: SamplePlan | None) -> SamplePlan:
    """Save the plan. Raises ValidationError, by field."""
    labels = values["audit_share"] or values["oversample"]
    try:
        if labels and not request.user.has_perm("labeling.manage_labeling"):
            name = "audit_share" if values["audit_share"] else "oversample"
            raise FieldProblem(name, "This token may not open labelling jobs: it needs manage_labeling.")
        return nightly_plan_save(
            settings=plan_settings(values),
            judge=judge_choice(values),
            by=cast(User, request.user),
            plan=plan,
        )
    except FieldProblem as problem:
        raise field_error(problem) from problem
