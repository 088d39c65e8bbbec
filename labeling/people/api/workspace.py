"""API of the workspace's labelling rules and of the audit log; leads only."""

from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import (
    INVALID,
    NO_ACCESS,
    ApiView,
    PagedList,
    QueryInput,
    RowOutput,
    choice_parameter,
    validated,
)
from labeling.models.people import AuditEvent, SecondFactor, User
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.core import KINDS, OBJECT_PATTERN, kind_of
from labeling.people.queries.audit import COLUMNS, AuditFilter, audit_events
from labeling.people.services.workspace import rules_now, workspace_change


class RulesSerializer(serializers.Serializer[Any]):
    """The rules of the workspace."""

    reveal_after_submit = serializers.BooleanField(required=False)
    evidence_on_false = serializers.BooleanField(required=False)
    comment_required = serializers.BooleanField(required=False)
    subjective_in_session_score = serializers.BooleanField(required=False)
    second_factor = serializers.ChoiceField(
        SecondFactor.choices, required=False, help_text="Who has to have a second factor."
    )


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
    """A change in the workspace; `actor` is null for workers, commands and failed sign-ins.

    `request_id` and `address`, the client's, are empty for workers and commands; `token_name`, of
    the API token that was used, is empty for pages, too.
    """

    actor = serializers.CharField(source="actor.username", allow_null=True, default=None)
    kind = serializers.SerializerMethodField()
    detail = serializers.DictField()

    class Meta:
        model = AuditEvent
        fields = COLUMNS

    def get_kind(self, event: AuditEvent) -> str:
        """Return the kind, as the filter names it."""
        return kind_of(event.verb)


class AuditQuery(QueryInput):
    """Filters of the audit log."""

    person = serializers.CharField(
        required=False, max_length=150, help_text="A user name; - for workers and commands."
    )
    token_name = serializers.CharField(required=False, max_length=120, help_text="The name of an API token.")
    kind = choice_parameter("kind", [kind.key for kind in KINDS])
    object = serializers.RegexField(
        OBJECT_PATTERN, required=False, max_length=80, help_text="Type and id: labeling.labelingjob:3"
    )
    first = serializers.DateField(required=False, help_text="The first day, in the workspace's zone.")
    last = serializers.DateField(required=False, help_text="The last day.")


@extend_schema_view(
    get=extend_schema(
        operation_id="workspace_log", responses={200: AuditOutput(many=True), 400: INVALID, **NO_ACCESS}
    )
)
class AuditApi(PagedList[AuditEvent]):
    """The audit log, newest first, without events about chats you cannot see."""

    permission_classes = [ManagesLabeling]
    serializer_class = AuditOutput
    query_classes: ClassVar = {"GET": AuditQuery}
    page_order = "-pk"

    def get_queryset(self) -> QuerySet[AuditEvent]:
        """Return the events that match and that this user may see."""
        names = AuditFilter.__dataclass_fields__.keys() & self.query.keys()
        only = AuditFilter(**{name: self.query[name] for name in names})
        return audit_events(user=cast(User, self.request.user), only=only)
