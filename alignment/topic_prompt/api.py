"""API of the topic prompt."""

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.topic_prompt.queries import prompt_json, prompt_state
from alignment.topic_prompt.services import topic_prompt_change, topic_prompt_measure
from common.api import INVALID, NO_ACCESS, PROBLEMS, ApiView, StrictInput, field_error, problem, validated
from common.problems import FieldProblem, InputProblem
from labeling.models.people import User
from labeling.people.api.permissions import ManagesLabeling


class TopicLineField(serializers.Serializer[Any]):
    """A topic of the list."""

    key = serializers.CharField(max_length=200)
    description = serializers.CharField(max_length=300, help_text="What belongs to it, in one line.")


class TopicPromptInput(StrictInput):
    """What to change; the rest stays."""

    active = serializers.BooleanField(required=False)
    endpoint = serializers.CharField(
        required=False, allow_blank=True, max_length=200, help_text="Its id; empty: the server's own."
    )
    model = serializers.CharField(required=False, allow_blank=True, max_length=200)
    topics = serializers.ListField(child=TopicLineField(), required=False, max_length=100)
    budget_usd = serializers.DecimalField(
        required=False, allow_null=True, min_value=0, max_digits=12, decimal_places=4, help_text="A day."
    )


class OtherAnswerOutput(serializers.Serializer[Any]):
    """Another answer than the given topic."""

    answer = serializers.CharField()
    chats = serializers.IntegerField()


class TopicAgreementOutput(serializers.Serializer[Any]):
    """A given topic against the prompt's answers."""

    topic = serializers.CharField()
    chats = serializers.IntegerField()
    agreed = serializers.IntegerField()
    others = OtherAnswerOutput(many=True)


class PromptAgreementOutput(serializers.Serializer[Any]):
    """Agreement with topics that senders or people gave; Wilson's interval, 95%."""

    chats = serializers.IntegerField()
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    topics = TopicAgreementOutput(many=True)


class TopicPromptOutput(serializers.Serializer[Any]):
    """The topic prompt, its work and its agreement."""

    active = serializers.BooleanField()
    endpoint = serializers.CharField()
    model = serializers.CharField()
    topics = TopicLineField(many=True)
    budget_usd = serializers.DecimalField(max_digits=12, decimal_places=4, allow_null=True)
    spent_today_usd = serializers.DecimalField(max_digits=20, decimal_places=12)
    problem = serializers.CharField(help_text="Why no topic is given at the moment; empty: nothing stops it.")
    waiting = serializers.IntegerField()
    answered_7_days = serializers.IntegerField()
    unknown_7_days = serializers.IntegerField()
    measuring = serializers.IntegerField(help_text="Chats left of a measurement.")
    agreement = PromptAgreementOutput()


class TopicPromptApi(ApiView):
    """The topic prompt."""

    permission_classes = [ManagesLabeling]

    @extend_schema(operation_id="topic_prompt", responses={200: TopicPromptOutput, **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """Which model gives topics to chats, how many wait, and how well it agrees with given topics."""
        return Response(TopicPromptOutput(prompt_json(prompt_state())).data)

    @extend_schema(
        operation_id="topic_prompt_change",
        request=TopicPromptInput,
        responses={200: TopicPromptOutput, 400: INVALID, **NO_ACCESS},
    )
    def patch(self, request: Request) -> Response:
        """Change the fields in the body; topics that were given stay."""
        body = validated(TopicPromptInput, request.data)
        try:
            topic_prompt_change(values=body, by=cast(User, request.user))
        except FieldProblem as wrong:
            raise field_error(wrong) from None
        return self.get(request)


class TopicPromptMeasureApi(ApiView):
    """A measurement of the topic prompt."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="topic_prompt_measure",
        request=None,
        responses={202: TopicPromptOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Ask the prompt about up to 200 chats whose topic is known; `agreement` then has the result.

        409 `not_measured`: a measurement is at work, or no such chat is left.
        """
        try:
            topic_prompt_measure(by=cast(User, request.user))
        except FieldProblem as wrong:
            raise field_error(wrong) from None
        except InputProblem as refused:
            raise problem("not_measured", str(refused)) from None
        return Response(TopicPromptOutput(prompt_json(prompt_state())).data, status=status.HTTP_202_ACCEPTED)
