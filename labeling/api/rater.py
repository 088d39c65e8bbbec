"""REST of the rater's side: own queue, own assignments, own answers."""

import uuid
from collections.abc import Mapping
from typing import Any, cast

from django.core.validators import MaxLengthValidator
from django.http import Http404
from django.urls import reverse
from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from labeling.api.base import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, LabelsChats, problem
from labeling.models.chats import Chat
from labeling.models.labels import Assignment
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.selectors.labels import Answer, answers_of, criteria_of, newest_version, own_assignment
from labeling.selectors.queue import QueueJob, queue_for
from labeling.services.labelling import (
    BadAnswer,
    Conflict,
    SkipReason,
    Unanswered,
    assignment_skip,
    assignment_submit,
    label_clear,
    label_save,
)
from labeling.services.roles import rater_for

HOUR_MS = 3_600_000


# ---------- what goes in and out ----------


class EvidenceSerializer(serializers.Serializer[Any]):
    """A part of a message, in code points; without start and end the whole message."""

    message = serializers.IntegerField(min_value=1)
    start = serializers.IntegerField(min_value=0, required=False)
    end = serializers.IntegerField(min_value=1, required=False)
    quote = serializers.CharField(required=False, trim_whitespace=False)


class LabelInput(serializers.Serializer[Any]):
    """An answer; `client_id` makes repeats harmless, `version` is the criterion version that was read."""

    client_id = serializers.UUIDField()
    value = serializers.BooleanField(allow_null=True)
    rationale = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, validators=[MaxLengthValidator(10_000)]
    )
    turns = serializers.ListField(child=serializers.IntegerField(min_value=1), required=False, max_length=200)
    evidence = EvidenceSerializer(many=True, required=False)
    version = serializers.IntegerField(min_value=1, required=False)
    active_ms = serializers.IntegerField(min_value=0, max_value=HOUR_MS, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """NB: JSON's true, false and null only; "yes" or 1 would be a guess."""
        given = cast(Mapping[str, Any], self.initial_data).get("value")
        if given is not None and not isinstance(given, bool):
            raise serializers.ValidationError({"value": "Must be true, false or null."})
        return attrs


class LabelOutput(serializers.Serializer[Answer]):
    """A rater's own answer."""

    criterion = serializers.CharField()
    value = serializers.BooleanField(allow_null=True)
    state = serializers.CharField()
    version = serializers.IntegerField()
    revision = serializers.IntegerField()
    rationale = serializers.CharField()
    turns = serializers.ListField(child=serializers.IntegerField())
    evidence = EvidenceSerializer(source="places", many=True)


class MessageOutput(serializers.Serializer[Any]):
    """One message of the chat."""

    n = serializers.IntegerField()
    role = serializers.CharField()
    content = serializers.CharField()
    created_at = serializers.CharField(required=False)


class ChatOutput(serializers.Serializer[Chat]):
    """The chat: its messages, no experiment, no metadata."""

    id = serializers.CharField(source="external_id")
    topic = serializers.CharField(source="topic.name")
    messages = MessageOutput(many=True)


class CriterionOutput(serializers.Serializer[Criterion]):
    """A criterion with the text in force."""

    key = serializers.CharField()
    dimension = serializers.CharField(source="dimension.key")
    version = serializers.SerializerMethodField()
    question = serializers.SerializerMethodField()
    definition = serializers.SerializerMethodField()
    allow_na = serializers.SerializerMethodField()

    def get_version(self, criterion: Criterion) -> int:
        """Number of the version in force."""
        return newest_version(criterion).number

    def get_question(self, criterion: Criterion) -> str:
        """The yes/no question."""
        return newest_version(criterion).question

    def get_definition(self, criterion: Criterion) -> str:
        """When the answer is True."""
        return newest_version(criterion).definition

    def get_allow_na(self, criterion: Criterion) -> bool:
        """Whether null is an answer."""
        return newest_version(criterion).allow_na


class AssignmentOutput(serializers.Serializer[Any]):
    """A chat to label with the rater's own answers."""

    id = serializers.IntegerField()
    state = serializers.CharField()
    job = serializers.IntegerField()
    chat = ChatOutput()
    criteria = CriterionOutput(many=True)
    labels = LabelOutput(many=True)


class StateOutput(serializers.Serializer[Any]):
    """What became of an assignment, and the address that leases and opens the next chat when posted to."""

    id = serializers.IntegerField()
    state = serializers.CharField()
    next = serializers.CharField()


class SkipInput(serializers.Serializer[Any]):
    """Why the chat is skipped; `text` is needed for "other"."""

    reason = serializers.ChoiceField(choices=SkipReason.choices)
    text = serializers.CharField(required=False, allow_blank=True, max_length=180)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """ "Something else" has to be said."""
        if attrs["reason"] == SkipReason.OTHER and not attrs.get("text", "").strip():
            raise serializers.ValidationError({"text": "Say in a few words why."})
        return attrs


class QueueJobOutput(serializers.Serializer[QueueJob]):
    """A job with the rater's own numbers."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    set = serializers.CharField(source="chat_set")
    criteria = serializers.IntegerField(source="criteria_count")
    due_at = serializers.DateTimeField(allow_null=True)
    closed = serializers.BooleanField()
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    assignment = serializers.IntegerField(allow_null=True)
    minutes_left = serializers.IntegerField(allow_null=True)


class QueueOutput(serializers.Serializer[Any]):
    """The rater's jobs."""

    jobs = QueueJobOutput(many=True)


class RaterView(APIView):
    """Routes of the rater behind the session."""

    permission_classes = [IsAuthenticated, LabelsChats]

    @cached_property
    def rater(self) -> Rater:
        """The rater who is signed in."""
        return rater_for(user=cast(User, self.request.user))

    def own(self, assignment_id: int) -> Assignment:
        """The rater's own assignment; anybody else's doesn't exist."""
        assignment = own_assignment(assignment_id=assignment_id, rater_id=self.rater.pk)
        if assignment is None:
            raise Http404
        return assignment

    def handle_exception(self, exc: Exception) -> Response:
        """The services' own errors as 400 and 409."""
        if isinstance(exc, Conflict):
            exc = problem(exc.code, str(exc))
        elif isinstance(exc, Unanswered):
            exc = problem("unanswered", str(exc), criteria=exc.keys)
        elif isinstance(exc, BadAnswer):
            exc = ValidationError({exc.field: [str(exc)]})
        return super().handle_exception(exc)


# ---------- routes ----------


class QueueApi(RaterView):
    """The queue."""

    @extend_schema(operation_id="queue", responses={200: QueueOutput, 403: FORBIDDEN, 404: NOT_FOUND})
    def get(self, request: Request) -> Response:
        """Own jobs with own numbers."""
        return Response(QueueOutput({"jobs": queue_for(rater=self.rater).jobs}).data)


class AssignmentApi(RaterView):
    """One chat to label."""

    @extend_schema(
        operation_id="assignment", responses={200: AssignmentOutput, 403: FORBIDDEN, 404: NOT_FOUND}
    )
    def get(self, request: Request, assignment_id: int) -> Response:
        """The chat, the criteria and the own answers."""
        assignment = self.own(assignment_id)
        criteria = criteria_of(assignment.job)
        answers = answers_of(assignment=assignment, criteria=criteria)
        body = {
            "id": assignment.pk,
            "state": assignment.state,
            "job": assignment.job_id,
            "chat": assignment.chat,
            "criteria": criteria,
            "labels": [answers[criterion.key] for criterion in criteria if criterion.key in answers],
        }
        return Response(AssignmentOutput(body).data)


class LabelApi(RaterView):
    """One answer of an assignment."""

    def criterion(self, assignment: Assignment, key: str) -> Criterion:
        """A criterion that the job asks."""
        found = next((row for row in criteria_of(assignment.job) if row.key == key), None)
        if found is None:
            raise Http404
        return found

    @extend_schema(
        operation_id="label_save",
        request=LabelInput,
        responses={
            200: LabelOutput,
            400: WRONG,
            **PROBLEMS,
        },
    )
    def put(self, request: Request, assignment_id: int, criterion_key: str) -> Response:
        """Save an answer; the same `client_id` again changes nothing and answers the same."""
        assignment = self.own(assignment_id)
        criterion = self.criterion(assignment, criterion_key)
        given = LabelInput(data=request.data)
        given.is_valid(raise_exception=True)
        answer = label_save(
            assignment=assignment,
            rater=self.rater,
            criterion=criterion,
            **given.validated_data,
        )
        return Response(LabelOutput(answer).data)

    @extend_schema(
        operation_id="label_clear",
        parameters=[OpenApiParameter("client_id", uuid.UUID, required=False)],
        responses={204: None, 400: WRONG, **PROBLEMS},
    )
    def delete(self, request: Request, assignment_id: int, criterion_key: str) -> Response:
        """Withdraw a draft answer."""
        assignment = self.own(assignment_id)
        criterion = self.criterion(assignment, criterion_key)
        client_id = None
        if raw := request.query_params.get("client_id"):
            client_id = serializers.UUIDField().run_validation(raw)
        label_clear(
            assignment=assignment,
            rater=self.rater,
            criterion=criterion,
            client_id=client_id,
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class SubmitApi(RaterView):
    """Finish a chat."""

    @extend_schema(operation_id="assignment_submit", request=None, responses={200: StateOutput, **PROBLEMS})
    def post(self, request: Request, assignment_id: int) -> Response:
        """Submit every answer; a second time changes nothing."""
        assignment = self.own(assignment_id)
        return state_of(assignment_submit(assignment=assignment, rater=self.rater))


class SkipApi(RaterView):
    """Give a chat back."""

    @extend_schema(
        operation_id="assignment_skip",
        request=SkipInput,
        responses={200: StateOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        """Skip with a reason; another rater gets the chat."""
        assignment = self.own(assignment_id)
        given = SkipInput(data=request.data)
        given.is_valid(raise_exception=True)
        text = given.validated_data.get("text", "").strip()
        reason = given.validated_data["reason"] + (f": {text}" if text else "")
        return state_of(assignment_skip(assignment=assignment, rater=self.rater, reason=reason))


def state_of(assignment: Assignment) -> Response:
    """An assignment's new state with the way to the next chat."""
    following = reverse("labeling:next", args=[assignment.job_id])
    return Response(StateOutput({"id": assignment.pk, "state": assignment.state, "next": following}).data)
