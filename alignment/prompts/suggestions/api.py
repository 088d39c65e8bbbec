"""Suggested revisions of a prompt over HTTP."""

from typing import Any, cast

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.queries.suggestions import (
    ShownSuggestion,
    suggestion_in_full,
    suggestion_shown,
)
from alignment.prompts.suggestions.services import (
    CHATS,
    FEWEST,
    MOST,
    SuggestionChoice,
    suggestion_start,
    suggestion_use,
)
from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, WritesTexts, problem
from common.problems import InputProblem
from evaluation.models.judges import JudgeProfile
from labeling.models.people import User
from labeling.models.rubric import Criterion


class SuggestionInput(serializers.Serializer[Any]):
    """How many chats at most, the profile whose judge's model drafts, and whether to ask the same anew."""

    chats = serializers.IntegerField(min_value=FEWEST, max_value=MOST, default=CHATS)
    profile: Any = serializers.SlugRelatedField(
        slug_field="name", queryset=JudgeProfile.objects.all(), required=False, allow_null=True
    )
    anew = serializers.BooleanField(default=False)


class SuggestionChatOutput(serializers.Serializer[Any]):
    """A chat that the model was shown, under its number in the reasons."""

    number = serializers.IntegerField()
    title = serializers.CharField()
    people = serializers.BooleanField(source="consensus")
    judge = serializers.BooleanField()
    url = serializers.CharField()


class SuggestionFindingOutput(serializers.Serializer[Any]):
    """What the lint says of the suggested prompt."""

    level = serializers.CharField()
    section = serializers.CharField()
    message = serializers.CharField()


class SuggestionOutput(serializers.Serializer[ShownSuggestion]):
    """A suggestion; `text` is the whole revised prompt, '' unless it is done.

    `raw` is an answer that could not be read. `is_draft`: your draft says just this.
    """

    id = serializers.IntegerField(source="row.pk")
    criterion = serializers.CharField(source="row.criterion.key")
    base = serializers.IntegerField(source="row.base.number", allow_null=True)
    state = serializers.ChoiceField(source="row.state", choices=Suggestion.State.choices)
    error = serializers.CharField(source="row.error")
    model = serializers.CharField(source="row.model")
    text = serializers.CharField(source="row.text")
    reasons = serializers.CharField(source="row.reasons")
    reason = serializers.CharField(source="row.reason")
    raw = serializers.CharField()
    reused = serializers.BooleanField(source="row.reused")
    cost_usd = serializers.DecimalField(
        source="row.cost_usd", max_digits=20, decimal_places=12, allow_null=True
    )
    created_at = serializers.DateTimeField(source="row.created_at")
    finished_at = serializers.DateTimeField(source="row.finished_at", allow_null=True)
    chats: Any = SuggestionChatOutput(many=True)
    findings: Any = SuggestionFindingOutput(many=True)
    is_draft = serializers.BooleanField()


class CriterionSuggestions(APIView):
    """Suggestions on a criterion."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="suggestion_start",
        request=SuggestionInput,
        responses={202: SuggestionOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, key: str) -> Response:
        """Have a revision of your draft, else of the champion, drafted from disagreements on train."""
        criterion = get_object_or_404(Criterion, key=key)
        given = SuggestionInput(data=request.data)
        given.is_valid(raise_exception=True)
        wanted = given.validated_data
        choice = SuggestionChoice(wanted["chats"], wanted.get("profile"), wanted["anew"])
        user = cast(User, request.user)
        try:
            row = suggestion_start(criterion=criterion, choice=choice, by=user)
        except InputProblem as refused:
            raise problem("refused", str(refused)) from refused
        body = SuggestionOutput(suggestion_in_full(row, user=user)).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


class SuggestionDetail(APIView):
    """One suggestion."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="suggestion", responses={200: SuggestionOutput, 403: FORBIDDEN, 404: NOT_FOUND}
    )
    def get(self, request: Request, suggestion_id: int) -> Response:
        """How far it is, and what was suggested."""
        user = cast(User, request.user)
        return Response(SuggestionOutput(suggestion_in_full(_row(suggestion_id, user), user=user)).data)


class SuggestionUseApi(APIView):
    """Taking a suggestion over."""

    permission_classes = [WritesTexts]

    @extend_schema(operation_id="suggestion_use", request=None, responses={200: SuggestionOutput, **PROBLEMS})
    def post(self, request: Request, suggestion_id: int) -> Response:
        """Make it your draft, over whatever that says now; nothing is released by it."""
        user = cast(User, request.user)
        row = _row(suggestion_id, user)
        try:
            suggestion_use(suggestion=row, by=user)
        except InputProblem as refused:
            raise problem("refused", str(refused)) from refused
        return Response(SuggestionOutput(suggestion_in_full(row, user=user)).data)


def _row(suggestion_id: int, user: User) -> Suggestion:
    row = suggestion_shown(suggestion_id=suggestion_id, user=user)
    if row is None:
        raise Http404
    return row
