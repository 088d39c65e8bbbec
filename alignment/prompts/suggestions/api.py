"""API of suggested revisions of a prompt."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

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
from common.access import found_or_404
from common.api import INVALID, NO_ACCESS, PROBLEMS, ApiView, problem, validated
from common.problems import InputProblem
from evaluation.models.judges import JudgeProfile
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import WritesTexts


class SuggestionInput(serializers.Serializer[Any]):
    """A suggestion to start.

    `chats` is the most chats to show, `profile` the judge profile whose model writes the revision. `anew`
    ignores stored answers. `from_texts` shows no chat: the prompt is written from the raters' texts.
    """

    chats = serializers.IntegerField(min_value=FEWEST, max_value=MOST, default=CHATS)
    profile: Any = serializers.SlugRelatedField(
        slug_field="name", queryset=JudgeProfile.objects.all(), required=False, allow_null=True
    )
    anew = serializers.BooleanField(default=False)
    from_texts = serializers.BooleanField(default=False)


class SuggestionChatOutput(serializers.Serializer[Any]):
    """A chat that the model saw; the reasons use its `number`."""

    number = serializers.IntegerField()
    title = serializers.CharField()
    people = serializers.BooleanField(source="consensus")
    judge = serializers.BooleanField()
    url = serializers.CharField()


class SuggestionFindingOutput(serializers.Serializer[Any]):
    """A problem that the lint found in the suggested prompt."""

    level = serializers.CharField()
    section = serializers.CharField()
    message = serializers.CharField()


class SuggestionOutput(serializers.Serializer[ShownSuggestion]):
    """A suggestion; `text` is the whole revised prompt, '' until it is done.

    `raw` is an answer that could not be read. `is_draft` is true when your draft has the same text.
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


class CriterionSuggestions(ApiView):
    """Suggestions on a criterion."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="suggestion_start",
        request=SuggestionInput,
        responses={202: SuggestionOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, key: str) -> Response:
        """Start a revision of your draft, or else of the champion, from train chats or the raters' texts."""
        criterion = get_object_or_404(Criterion, key=key)
        body = validated(SuggestionInput, request.data)
        choice = SuggestionChoice(body["chats"], body.get("profile"), body["anew"], body["from_texts"])
        user = cast(User, request.user)
        try:
            row = suggestion_start(criterion=criterion, choice=choice, by=user)
        except InputProblem as refused:
            raise problem("refused", str(refused)) from refused
        answer = SuggestionOutput(suggestion_in_full(row, user=user)).data
        return Response(answer, status=status.HTTP_202_ACCEPTED)


class SuggestionDetail(ApiView):
    """One suggestion."""

    permission_classes = [WritesTexts]

    @extend_schema(operation_id="suggestion", responses={200: SuggestionOutput, **NO_ACCESS})
    def get(self, request: Request, suggestion_id: int) -> Response:
        """The suggestion's state and text."""
        user = cast(User, request.user)
        return Response(SuggestionOutput(suggestion_in_full(_row(suggestion_id, user), user=user)).data)


class SuggestionUseApi(ApiView):
    """Use of a suggestion."""

    permission_classes = [WritesTexts]

    @extend_schema(operation_id="suggestion_use", request=None, responses={200: SuggestionOutput, **PROBLEMS})
    def post(self, request: Request, suggestion_id: int) -> Response:
        """Replace your draft with the suggestion."""
        user = cast(User, request.user)
        row = _row(suggestion_id, user)
        try:
            suggestion_use(suggestion=row, by=user)
        except InputProblem as refused:
            raise problem("refused", str(refused)) from refused
        return Response(SuggestionOutput(suggestion_in_full(row, user=user)).data)


def _row(suggestion_id: int, user: User) -> Suggestion:
    return found_or_404(suggestion_shown(suggestion_id=suggestion_id, user=user))
