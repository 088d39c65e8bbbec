"""API of issues: list, read and change."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.issues.core.naming import LONGEST_NAME
from alignment.issues.queries.issues import STATES, IssueFilter, IssuePage, issue_list, issue_page
from alignment.issues.services import (
    LONGEST_NOTE,
    ChangedMeanwhile,
    IssueChange,
    issue_change,
)
from alignment.models.issues import Issue
from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    ApiView,
    QueryInput,
    StrictInput,
    choice_parameter,
    field_error,
    problem,
    validated,
)
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.people.api.permissions import SeesJudge, WritesTexts


class SeesAndEdits(SeesJudge):
    """Reading requires `see_judge`, a change also `edit_prompts`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Check one permission or both. Raises Http404 without them."""
        allowed = super().has_permission(request, view)
        return allowed and (request.method == "GET" or WritesTexts().has_permission(request, view))


class IssueQuery(QueryInput):
    """Filters of issues."""

    state = choice_parameter(
        "state", [state for state in STATES if state], help_text="Default: open and acknowledged."
    )
    criterion = serializers.CharField(required=False, help_text="Key of a criterion.")
    topic = serializers.CharField(required=False, help_text="Key of a topic.")
    owner = serializers.CharField(required=False, help_text="A user's name, or nobody.")


class IssueWeekOutput(serializers.Serializer[Any]):
    """The chats of an issue in a week, by its Monday."""

    week = serializers.DateField()
    chats = serializers.IntegerField()


class IssueOutput(serializers.Serializer[Any]):
    """An issue; `chats` and `share` are those of the newest week."""

    id = serializers.IntegerField(source="issue.pk")
    name = serializers.CharField(source="issue.name")
    criterion = serializers.CharField(source="issue.criterion.key")
    topic = serializers.CharField(source="issue.topic.key")
    state = serializers.ChoiceField(source="issue.state", choices=Issue.State.choices)
    owner = serializers.CharField(source="issue.owner.username", allow_null=True, default=None)
    first_week = serializers.DateField(source="issue.first_week", allow_null=True)
    last_week = serializers.DateField(source="issue.last_week", allow_null=True)
    chats = serializers.IntegerField()
    share = serializers.FloatField(
        allow_null=True, help_text="Share of the failing chats of the newest week."
    )
    chats_before = serializers.IntegerField(source="before")
    chats_total = serializers.IntegerField(source="total")
    new = serializers.BooleanField(source="is_new")
    back_after_weeks = serializers.IntegerField(source="back_after")
    returned = serializers.BooleanField(source="issue.returned", help_text="Was fixed, and occurred again.")
    merged_into = serializers.IntegerField(source="issue.merged_into_id", allow_null=True)
    weeks = IssueWeekOutput(many=True, source="trend")
    revision = serializers.IntegerField(source="issue.revision")


class IssueChatOutput(serializers.Serializer[Any]):
    """A typical chat: `message` is the one that the rationale quotes first, 0 for none."""

    chat = serializers.CharField(source="verdict.chat.external_id")
    run = serializers.IntegerField(source="verdict.run_id")
    message = serializers.IntegerField()
    rationale = serializers.CharField(source="words")


class IssueDetailOutput(IssueOutput):
    """An issue with its note, terms, typical chats and topics."""

    note = serializers.CharField(source="issue.note")
    summary = serializers.CharField(source="issue.summary")
    terms = serializers.ListField(child=serializers.CharField())
    examples = IssueChatOutput(many=True)
    topics = serializers.DictField(child=serializers.IntegerField())


class IssueChangeInput(StrictInput):
    """A change; `revision` is the one that you read."""

    revision = serializers.IntegerField(min_value=0)
    state = serializers.ChoiceField(choices=Issue.State.choices, required=False)
    owner = serializers.CharField(allow_blank=True, required=False, max_length=150)
    note = serializers.CharField(allow_blank=True, required=False, max_length=LONGEST_NOTE)
    name = serializers.CharField(required=False, max_length=LONGEST_NAME)


class IssueListOutput(serializers.Serializer[Any]):
    """Issues, and the newest week that was clustered."""

    week = serializers.DateField(allow_null=True)
    failing_chats = serializers.IntegerField()
    issues = IssueOutput(many=True)


class IssueListApi(ApiView):
    """Problems of the bot, the largest first."""

    permission_classes = [SeesJudge]
    query_classes: ClassVar = {"GET": IssueQuery}

    @extend_schema(operation_id="issues", responses={200: IssueListOutput, 400: INVALID, **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """The issues with their chats by week."""
        found = issue_list(only=IssueFilter(**self.query), user=request.user)
        body = {
            "week": found.newest.week if found.newest else None,
            "failing_chats": found.newest.chats if found.newest else 0,
            "issues": found.rows,
        }
        return Response(IssueListOutput(body).data)


class IssueApi(ApiView):
    """One issue."""

    permission_classes = [SeesAndEdits]

    @extend_schema(operation_id="issue", responses={200: IssueDetailOutput, **NO_ACCESS})
    def get(self, request: Request, issue_id: int) -> Response:
        """The issue with typical chats that you can see."""
        return _detail(request, issue_id)

    @extend_schema(
        operation_id="issue_change",
        request=IssueChangeInput,
        responses={200: IssueDetailOutput, 400: INVALID, **PROBLEMS},
    )
    def patch(self, request: Request, issue_id: int) -> Response:
        """Set state, owner, note or name. 409 if somebody else has changed it since `revision`."""
        values = validated(IssueChangeInput, request.data)
        seen, row = values.pop("revision"), get_object_or_404(Issue, pk=issue_id)
        try:
            issue_change(issue=row, change=IssueChange(**values), seen=seen, by=cast(User, request.user))
        except ChangedMeanwhile as meanwhile:
            raise problem("changed", str(meanwhile)) from meanwhile
        except FieldProblem as wrong:
            raise field_error(wrong) from wrong
        return _detail(request, issue_id)


def _detail(request: Request, issue_id: int) -> Response:
    rows = Issue.objects.select_related("criterion", "topic", "owner")
    found = issue_page(get_object_or_404(rows, pk=issue_id), user=request.user)
    return Response(_whole(found))


def _whole(found: IssuePage) -> Any:
    topics: Sequence[Any] = [(topic.key, chats) for topic, chats in found.topics]
    more = {"terms": found.terms, "examples": found.examples, "topics": dict(topics)}
    body = {**{name: getattr(found.row, name) for name in _ROW}, **more}
    return IssueDetailOutput(body).data


_ROW = ("issue", "trend", "chats", "before", "total", "share", "is_new", "back_after")
