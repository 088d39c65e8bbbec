"""Bodies of the rater's API."""

from typing import Any

from django.core.validators import MaxLengthValidator
from rest_framework import serializers

from common.api import AnswerInput, ProblemOutput, QueryInput, RowOutput
from labeling.models.chats import Chat
from labeling.models.labels import RaterNote
from labeling.models.rubric import Criterion
from labeling.rating.core.evidence import LIMIT
from labeling.rating.queries.labels import Answer
from labeling.rating.queries.queue import QueueJob
from labeling.rating.services.leases import SkipReason
from labeling.rubric.queries.criteria import newest_version
from labeling.rubric.queries.guidelines import Change, CriterionText

HOUR_MS = 3_600_000


class EvidenceSerializer(serializers.Serializer[Any]):
    """A passage of a message, in code points; without `start` and `end` the whole message."""

    message = serializers.IntegerField(min_value=1)
    start = serializers.IntegerField(min_value=0, required=False)
    end = serializers.IntegerField(min_value=1, required=False)
    quote = serializers.CharField(required=False, trim_whitespace=False)


class LabelInput(AnswerInput):
    """An answer. Repeating a `client_id` saves nothing new; `version` is the criterion version that was read.

    `revision` is that of the answer you know, 0 for none: a newer answer is never overwritten.
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


class ClearInput(QueryInput):
    """A withdrawal."""

    client_id = serializers.UUIDField(required=False)
    revision = serializers.IntegerField(min_value=0, required=False)


class SubmitInput(serializers.Serializer[Any]):
    """The state that the tab shows when it submits.

    `revisions` are those of its answers by criterion, 0 for none. `guideline` is the number of the guideline
    that was read, null for none. `active_ms` is the time since the last saved answer.
    """

    revisions = serializers.DictField(child=serializers.IntegerField(min_value=0), required=False)
    guideline = serializers.IntegerField(min_value=0, allow_null=True, required=False)
    active_ms = serializers.IntegerField(min_value=0, max_value=HOUR_MS, required=False)

    def validate_guideline(self, number: int | None) -> int:
        """Return 0 for null: the service reads None as a missing field."""
        return number or 0


class LabelOutput(serializers.Serializer[Answer]):
    """One of the rater's own answers."""

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
    """A message of the chat."""

    n = serializers.IntegerField()
    role = serializers.CharField()
    content = serializers.CharField()
    created_at = serializers.CharField(required=False)


class ChatOutput(serializers.Serializer[Chat]):
    """The chat with its messages, without experiment and metadata."""

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
    passes_when = serializers.SerializerMethodField()
    evidence_on_fail = serializers.BooleanField()

    def get_version(self, criterion: Criterion) -> int:
        """Return the number of the version in force."""
        return newest_version(criterion).number

    def get_question(self, criterion: Criterion) -> str:
        """Return the yes/no question."""
        return newest_version(criterion).question

    def get_definition(self, criterion: Criterion) -> str:
        """Return the definition: when the answer is True."""
        return newest_version(criterion).definition

    def get_allow_na(self, criterion: Criterion) -> bool:
        """Return whether null (not applicable) is an answer."""
        return newest_version(criterion).allow_na

    def get_passes_when(self, criterion: Criterion) -> bool:
        """Return the answer that is good for the chatbot; the other one fails."""
        return newest_version(criterion).passes_when


class OwnNoteOutput(RowOutput[RaterNote]):
    """One of the rater's own notes on the chat."""

    criterion = serializers.CharField(source="criterion.key", allow_null=True, default=None)
    at = serializers.DateTimeField(source="created_at")

    class Meta:
        model = RaterNote
        fields = ("kind", "criterion", "text", "at")


class AssignmentOutput(serializers.Serializer[Any]):
    """A chat to label, with the rater's own answers and notes."""

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
    """The new state of an assignment; POST to `next` leases and opens the next chat."""

    id = serializers.IntegerField()
    state = serializers.CharField()
    next = serializers.CharField()


class LeaseOutput(serializers.Serializer[Any]):
    """When the lease expires."""

    expires_at = serializers.DateTimeField()


class StaleOutput(ProblemOutput):
    """Why the answer was not saved; for `stale`, `answer` is the current one (null: withdrawn)."""

    answer = LabelOutput(allow_null=True, required=False)


class IncompleteOutput(ProblemOutput):
    """Why the chat cannot be submitted: criteria without an answer, evidence or a comment."""

    criteria = serializers.ListField(child=serializers.CharField(), required=False)
    evidence = serializers.ListField(child=serializers.CharField(), required=False)
    comment = serializers.ListField(child=serializers.CharField(), required=False)


class SkipInput(serializers.Serializer[Any]):
    """Why the chat is skipped; "other" requires `text`."""

    reason = serializers.ChoiceField(choices=SkipReason.choices)
    text = serializers.CharField(required=False, allow_blank=True, max_length=180)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require a text for "other"."""
        if attrs["reason"] == SkipReason.OTHER and not attrs.get("text", "").strip():
            raise serializers.ValidationError({"text": "Give the reason in a few words."})
        return attrs


class QueueJobOutput(serializers.Serializer[QueueJob]):
    """A job with the rater's own progress."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    set = serializers.CharField(source="chat_set")
    criteria = serializers.IntegerField(source="criteria_count")
    due_at = serializers.DateTimeField(allow_null=True)
    closed = serializers.BooleanField()
    held_up = serializers.BooleanField(help_text="Its calibration round is not finished yet.")
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    assignment = serializers.IntegerField(allow_null=True)
    minutes_left = serializers.IntegerField(allow_null=True)


class QueueOutput(serializers.Serializer[Any]):
    """The rater's jobs."""

    jobs = QueueJobOutput(many=True)


class CriterionTextOutput(serializers.Serializer[CriterionText]):
    """A criterion's texts for raters; `guideline` is Markdown."""

    key = serializers.CharField()
    version = serializers.IntegerField(source="number")
    question = serializers.CharField()
    definition = serializers.CharField()
    guideline = serializers.CharField()
    true_example = serializers.CharField()
    false_example = serializers.CharField()


class ChangeOutput(serializers.Serializer[Change]):
    """A text that is new to the rater.

    `criterion` is '' for the rubric's guideline, `old` 0 for a first version.
    """

    criterion = serializers.CharField()
    name = serializers.CharField()
    old = serializers.IntegerField()
    new = serializers.IntegerField()
    url = serializers.CharField()


class GuidanceOutput(serializers.Serializer[Any]):
    """The guideline in force (`number` 0: none), the criteria's texts, changes, and the end of the lease."""

    rubric = serializers.CharField()
    number = serializers.IntegerField()
    text = serializers.CharField()
    criteria = CriterionTextOutput(many=True)
    changes = ChangeOutput(many=True)
    lease_expires_at = serializers.DateTimeField(allow_null=True)
