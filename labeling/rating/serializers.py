"""What goes into the rater's API and what comes out."""

from typing import Any

from django.core.validators import MaxLengthValidator
from rest_framework import serializers

from common.api import AnswerInput, ProblemOutput
from labeling.models.chats import Chat
from labeling.models.labels import RaterNote
from labeling.models.rubric import Criterion
from labeling.rating.core.evidence import LIMIT
from labeling.rating.queries.labels import Answer
from labeling.rating.queries.queue import QueueJob
from labeling.rating.services.leases import SkipReason
from labeling.rubric.queries.criteria import newest_version

HOUR_MS = 3_600_000


class EvidenceSerializer(serializers.Serializer[Any]):
    """A part of a message, in code points; without start and end the whole message."""

    message = serializers.IntegerField(min_value=1)
    start = serializers.IntegerField(min_value=0, required=False)
    end = serializers.IntegerField(min_value=1, required=False)
    quote = serializers.CharField(required=False, trim_whitespace=False)


class LabelInput(AnswerInput):
    """An answer; `client_id` makes repeats harmless, `version` is the criterion version that was read.

    `revision` is that of the answer the sender knew, 0 for none: nothing is saved over a newer one.
    """

    client_id = serializers.UUIDField()
    rationale = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, validators=[MaxLengthValidator(10_000)]
    )
    turns = serializers.ListField(
        child=serializers.IntegerField(min_value=1), required=False, max_length=LIMIT
    )
    evidence = serializers.ListField(child=EvidenceSerializer(), required=False, max_length=LIMIT)
    version = serializers.IntegerField(min_value=1, required=False)
    revision = serializers.IntegerField(min_value=0, required=False)
    active_ms = serializers.IntegerField(min_value=0, max_value=HOUR_MS, required=False)


class ClearInput(serializers.Serializer[Any]):
    """What a withdrawal may say of itself, in the query string."""

    client_id = serializers.UUIDField(required=False)
    revision = serializers.IntegerField(min_value=0, required=False)


class SubmitInput(serializers.Serializer[Any]):
    """What a tab knows when it submits: `revisions` by criterion of the answers it shows, 0 for none;
    `guideline`, the number of the rubric's guideline that was read, null for none; `active_ms` since the last
    saved answer.
    """

    revisions = serializers.DictField(child=serializers.IntegerField(min_value=0), required=False)
    guideline = serializers.IntegerField(min_value=0, allow_null=True, required=False)
    active_ms = serializers.IntegerField(min_value=0, max_value=HOUR_MS, required=False)

    def validate_guideline(self, number: int | None) -> int:
        """The service's None is "not said"."""
        return number or 0


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
    post_reveal = serializers.BooleanField()


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


class OwnNoteOutput(serializers.Serializer[RaterNote]):
    """What the rater noted on the chat."""

    kind = serializers.CharField()
    criterion = serializers.CharField(source="criterion.key", allow_null=True, default=None)
    text = serializers.CharField()
    at = serializers.DateTimeField(source="created_at")


class AssignmentOutput(serializers.Serializer[Any]):
    """A chat to label with the rater's own answers."""

    id = serializers.IntegerField()
    state = serializers.CharField()
    job = serializers.IntegerField()
    lease_expires_at = serializers.DateTimeField(allow_null=True)
    revealed_at = serializers.DateTimeField(allow_null=True)
    chat = ChatOutput()
    criteria = CriterionOutput(many=True)
    labels = LabelOutput(many=True)
    notes = OwnNoteOutput(many=True)


class StateOutput(serializers.Serializer[Any]):
    """What became of an assignment, and the address that leases and opens the next chat when posted to."""

    id = serializers.IntegerField()
    state = serializers.CharField()
    next = serializers.CharField()


class LeaseOutput(serializers.Serializer[Any]):
    """Until when the chat is held."""

    expires_at = serializers.DateTimeField()


class StaleOutput(ProblemOutput):
    """Why nothing was saved; with `stale`, the answer as it stands (null = withdrawn)."""

    answer = LabelOutput(allow_null=True, required=False)


class IncompleteOutput(ProblemOutput):
    """Why the chat can't be submitted, and which criteria still lack something."""

    criteria = serializers.ListField(child=serializers.CharField(), required=False)
    evidence = serializers.ListField(child=serializers.CharField(), required=False)
    comment = serializers.ListField(child=serializers.CharField(), required=False)


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
    held_up = serializers.BooleanField(help_text="Chats of its calibration round come first.")
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    assignment = serializers.IntegerField(allow_null=True)
    minutes_left = serializers.IntegerField(allow_null=True)


class QueueOutput(serializers.Serializer[Any]):
    """The rater's jobs."""

    jobs = QueueJobOutput(many=True)
