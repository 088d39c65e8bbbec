"""API of the workspace's labelling rules and of the audit log; leads only."""

from typing import Any, cast

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import INVALID, NO_ACCESS, ApiView, PagedList, RowOutput, validated
from labeling.models.people import AuditEvent, User
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.queries.audit import audit_events
from labeling.people.services.workspace import rules_now, workspace_change


class RulesSerializer(serializers.Serializer[Any]):
    """The labelling rules, and whether subjective criteria count in session scores."""

    reveal_after_submit = serializers.BooleanField(required=False)
    evidence_on_false = serializers.BooleanField(required=False)
    comment_required = serializers.BooleanField(required=False)
    subjective_in_session_score = serializers.BooleanField(required=False)


class WorkspaceApi(ApiView):
    """The rules in force."""

    permission_classes = [ManagesLabeling]

    @extend_schema(operation_id="workspace", responses={200: RulesSerializer, **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """The rules in force."""
        return Response(RulesSerializer(rules_now()).data)

    @extend_schema(
        operation_id="workspace_change",
        request=RulesSerializer,
        responses={200: RulesSerializer, 400: INVALID, **NO_ACCESS},
    )
    def patch(self, request: Request) -> Response:
        """Change the rules in the body; the others stay."""
        rules = validated(RulesSerializer, request.data, partial=True)
        workspace_change(rules=rules, by=cast(User, request.user))
        return self.get(request)


class AuditOutput(RowOutput[AuditEvent]):
    """A change in the workspace; `actor` is null for the command line."""

    actor = serializers.CharField(source="actor.username", allow_null=True, default=None)
    detail = serializers.DictField()

    class Meta:
        model = AuditEvent
        fields = ("id", "at", "actor", "verb", "object_type", "object_id", "detail")


@extend_schema_view(
    get=extend_schema(operation_id="workspace_log", responses={200: AuditOutput(many=True), **NO_ACCESS})
)
class AuditApi(PagedList[AuditEvent]):
    """The audit log of the labelling side, newest first, without events about chats you cannot see."""

    permission_classes = [ManagesLabeling]
    serializer_class = AuditOutput
    page_order = "-pk"

    def get_queryset(self) -> QuerySet[AuditEvent]:
        """Return the events that this user may see."""
        return audit_events(user=cast(User, self.request.user))
