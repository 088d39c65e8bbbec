"""Policies of the gate over HTTP."""

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.models.regressions import Policy
from alignment.regression.queries.policy_page import policy_body, policy_chosen
from alignment.regression.serializers import StrictInput
from alignment.regression.services.policies import policy_in_force, policy_revise
from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, Permitted, problem
from common.problems import FieldProblem, InputProblem
from evaluation.runs.api import SeesJudge
from labeling.models.people import User


class Releases(Permitted):
    """Needed for what decides over releases."""

    permission = "labeling.release_prompts"


class PolicyInput(StrictInput):
    """The limits that change, by name, and why."""

    parameters = serializers.DictField(help_text="Limits that differ from those in force.")
    reason = serializers.CharField(max_length=2000)
    base = serializers.IntegerField(
        required=False, help_text="The policy that was read before; another one in force is a conflict."
    )


class PolicyOutput(serializers.Serializer[Any]):
    """One version of a policy."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    in_force = serializers.BooleanField()
    parameters = serializers.DictField()
    reason = serializers.CharField(allow_blank=True)
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class PolicyList(APIView):
    """The policies, newest first."""

    def get_permissions(self) -> list[Any]:
        """Reading is seeing; revising is for those who release."""
        return [Releases() if self.request.method == "POST" else SeesJudge()]

    @extend_schema(
        operation_id="policies",
        responses={200: PolicyOutput(many=True), 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request) -> Response:
        """Every stored version; without one in force the start values of the gate are."""
        rows = Policy.objects.filter(kind=Policy.Kind.GATE).select_related("created_by").order_by("-id")
        current = policy_chosen()
        bodies = [policy_body(row, in_force=row == current) for row in rows]
        return Response(PolicyOutput(bodies, many=True).data)

    @extend_schema(
        operation_id="policy_revise",
        request=PolicyInput,
        responses={201: PolicyOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Make the next version of the policy in force."""
        given = PolicyInput(data=request.data)
        given.is_valid(raise_exception=True)
        body, current = given.validated_data, policy_in_force()
        if body.get("base", current.pk) != current.pk:
            raise problem("changed", f"the policy was changed meanwhile: {current} is in force")
        try:
            row = policy_revise(
                changes=body["parameters"],
                reason=body["reason"],
                by=cast(User, request.user),
                base=current,
            )
        except FieldProblem as wrong:
            raise ValidationError({wrong.field: [wrong.message]}) from wrong
        except InputProblem as wrong:
            raise ValidationError({"detail": [str(wrong)]}) from wrong
        return Response(PolicyOutput(policy_body(row, in_force=True)).data, status=status.HTTP_201_CREATED)
