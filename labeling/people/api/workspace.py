"""REST of the workspace's rules and of the log; leads only."""

from typing import Any, cast

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api import FORBIDDEN, NOT_FOUND, WRONG
from labeling.models.people import AuditEvent, User
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.queries.audit import audit_events
from labeling.people.services.workspace import rules_now, workspace_change


class RulesSerializer(serializers.Serializer[Any]):
    """The rules of labelling."""

    reveal_after_submit = serializers.BooleanField(required=False)
    evidence_on_false = serializers.BooleanField(required=False)
    comment_required = serializers.BooleanField(required=False)


class WorkspaceApi(APIView):
    """The rules in force."""

    permission_classes = [ManagesLabeling]

    @extend_schema(operation_id="workspace", responses={200: RulesSerializer, 403: FORBIDDEN, 404: NOT_FOUND})
    def get(self, request: Request) -> Response:
        """The rules."""
        return Response(RulesSerializer(rules_now()).data)

    @extend_schema(
        operation_id="workspace_change",
        request=RulesSerializer,
        responses={200: RulesSerializer, 400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def patch(self, request: Request) -> Response:
        """Change the rules that are named."""
        given = RulesSerializer(data=request.data, partial=True)
        given.is_valid(raise_exception=True)
        workspace_change(rules=given.validated_data, by=cast(User, request.user))
        return self.get(request)


class AuditOutput(serializers.Serializer[AuditEvent]):
    """Who did what; `actor` null = the command line."""

    id = serializers.IntegerField(source="pk")
    at = serializers.DateTimeField()
    actor = serializers.CharField(source="actor.username", allow_null=True, default=None)
    verb = serializers.CharField()
    object_type = serializers.CharField()
    object_id = serializers.IntegerField()
    detail = serializers.DictField()


class AuditPages(CursorPagination):
    """Newest first, 100 a page."""

    page_size = 100
    ordering = "-pk"


class AuditApi(ListAPIView[AuditEvent]):
    """The log of the labelling side; events about chats that the caller may not see are left out."""

    permission_classes = [ManagesLabeling]
    serializer_class = AuditOutput
    pagination_class = AuditPages

    def get_queryset(self) -> QuerySet[AuditEvent]:
        """The caller's."""
        return audit_events(user=cast(User, self.request.user))

    @extend_schema(
        operation_id="workspace_log",
        responses={200: AuditOutput(many=True), 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Events, newest first."""
        return super().get(request, *args, **kwargs)
