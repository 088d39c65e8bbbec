"""API of the gate's policies."""

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.models.regressions import Policy
from alignment.regression.queries.policy_page import policy_body, policy_revised
from alignment.regression.services.policies import policy_in_force, policy_revise
from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    PostPermission,
    StrictInput,
    field_error,
    problem,
    validated,
)
from common.problems import FieldProblem, InputProblem
from labeling.models.people import User
from labeling.people.api.permissions import Releases, SeesJudge


class PolicyInput(StrictInput):
    """Changed limits by name, and the reason."""

    parameters = serializers.DictField(help_text="Limits to change.")
    reason = serializers.CharField(max_length=2000)
    base = serializers.IntegerField(
        required=False, help_text="The policy that you read: 409 if another one is in force."
    )


class PolicyOutput(serializers.Serializer[Any]):
    """A version of a policy."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    in_force = serializers.BooleanField()
    parameters = serializers.DictField()
    reason = serializers.CharField(allow_blank=True)
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class PolicyList(PostPermission):
    """The policies, newest first."""

    permission_classes = [SeesJudge]
    post_permission = Releases

    @extend_schema(operation_id="policies", responses={200: PolicyOutput(many=True), **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """Every stored version. If none is in force, the gate uses its default limits."""
        rows = Policy.objects.filter(kind=Policy.Kind.GATE).select_related("created_by").order_by("-id")
        current = policy_revised()
        bodies = [policy_body(row, in_force=row == current) for row in rows]
        return Response(PolicyOutput(bodies, many=True).data)

    @extend_schema(
        operation_id="policy_revise",
        request=PolicyInput,
        responses={201: PolicyOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Save a new version of the policy in force."""
        body, current = validated(PolicyInput, request.data), policy_in_force()
        if body.get("base", current.pk) != current.pk:
            raise problem("changed", f"The policy has changed: {current} is in force.")
        try:
            row = policy_revise(
                changes=body["parameters"],
                reason=body["reason"],
                by=cast(User, request.user),
                base=current,
            )
        except FieldProblem as wrong:
            raise field_error(wrong) from wrong
        except InputProblem as wrong:
            raise ValidationError({"detail": [str(wrong)]}) from wrong
        return Response(PolicyOutput(policy_body(row, in_force=True)).data, status=status.HTTP_201_CREATED)
