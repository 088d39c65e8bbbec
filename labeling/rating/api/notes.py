"""API of raters' notes: raters add them; authors and leads list and settle them."""

from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from common.access import found_or_404
from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    ApiView,
    PagedList,
    QueryInput,
    RowOutput,
    choice_parameter,
    row_parameter,
    validated,
)
from labeling.models.labels import RaterNote
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import WritesTexts
from labeling.rating.api.rater import RaterView
from labeling.rating.queries.labels import asked_criterion
from labeling.rating.queries.notes import NoteFilter, notes_for
from labeling.rating.services.notes import note_add, note_settle

LONGEST = 4_000  # characters of a note
STATES = ["open", "settled"]


class NoteInput(serializers.Serializer[Any]):
    """A note. Repeating a `client_id` adds nothing; `version` is the criterion version that was read."""

    client_id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=RaterNote.Kind.choices)
    criterion = serializers.CharField(required=False)
    text = serializers.CharField(required=False, allow_blank=True, default="", max_length=LONGEST)
    version = serializers.IntegerField(required=False, min_value=1)


class NoteOutput(RowOutput[RaterNote]):
    """A rater's own note."""

    criterion = serializers.CharField(source="criterion.key", allow_null=True, default=None)
    version = serializers.IntegerField(source="version.number", allow_null=True, default=None)
    settled = serializers.SerializerMethodField()

    class Meta:
        model = RaterNote
        fields: tuple[str, ...] = ("id", "kind", "criterion", "version", "text", "created_at", "settled")

    def get_settled(self, note: RaterNote) -> bool:
        """Return whether the note is settled."""
        return note.settled_at is not None


class AnyNoteOutput(NoteOutput):
    """A note, as authors and leads see it."""

    chat = serializers.CharField(source="chat.external_id")
    rater = serializers.CharField(source="rater.name")
    settled_by = serializers.CharField(source="settled_by.username", allow_null=True, default=None)

    class Meta(NoteOutput.Meta):
        fields = (*NoteOutput.Meta.fields, "chat", "rater", "settled_by", "settled_at")


class AssignmentNotesApi(RaterView):
    """Notes on one chat."""

    @extend_schema(
        operation_id="note_add",
        request=NoteInput,
        responses={200: NoteOutput, 201: NoteOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        """Add a note. Repeating a `client_id` changes nothing and answers 200."""
        assignment = self.own(assignment_id)
        values = validated(NoteInput, request.data)
        if key := values.pop("criterion", None):
            values["criterion"] = found_or_404(asked_criterion(job_id=assignment.job_id, key=key))
        added = note_add(rater=self.rater, assignment=assignment, **values)
        code = status.HTTP_201_CREATED if added.new else status.HTTP_200_OK
        return Response(NoteOutput(added.note).data, status=code)


class NoteQuery(QueryInput):
    """Filters of notes."""

    kind = choice_parameter("kind", RaterNote.Kind.values)
    criterion = row_parameter("criterion", Criterion.objects.all(), "key", help_text="Key of a criterion.")
    state = choice_parameter("state", STATES)


@extend_schema_view(
    get=extend_schema(
        operation_id="notes",
        responses={200: AnyNoteOutput(many=True), **NO_ACCESS},
    )
)
class NotesApi(PagedList[RaterNote]):
    """Notes, newest first: all for leads; for authors, unclear criteria on chats outside holdout."""

    permission_classes = [WritesTexts]
    serializer_class = AnyNoteOutput
    query_classes: ClassVar = {"GET": NoteQuery}
    page_size = 50
    page_order = "-pk"

    def get_queryset(self) -> Any:
        """Return the notes that this user may read and the query selects."""
        criterion = self.query.get("criterion")
        only = NoteFilter(
            kind=self.query.get("kind", ""),
            criterion=criterion.key if criterion else "",
            state=self.query.get("state", ""),
        )
        rows = only.of(notes_for(user=self.request.user))
        rows = rows.select_related("chat", "rater", "criterion", "version", "settled_by")
        return rows.defer("chat__messages", "chat__metadata")


class NoteSettleApi(ApiView):
    """Settling a note."""

    permission_classes = [WritesTexts]

    @extend_schema(operation_id="note_settle", request=None, responses={200: AnyNoteOutput, **NO_ACCESS})
    def post(self, request: Request, note_id: int) -> Response:
        """Settle a note. Repeating it changes nothing."""
        user = cast(User, request.user)
        note = get_object_or_404(notes_for(user=user), pk=note_id)
        return Response(AnyNoteOutput(note_settle(note=note, by=user)).data)
