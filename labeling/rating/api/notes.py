"""REST of raters' notes: a rater adds them; authors and leads list and settle them."""

from typing import Any, cast

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG
from labeling.models.labels import RaterNote
from labeling.models.people import User
from labeling.people.api.permissions import WritesTexts
from labeling.rating.api.rater import RaterView
from labeling.rating.queries.labels import asked_criterion
from labeling.rating.queries.notes import NoteFilter, notes_for
from labeling.rating.services.notes import note_add, note_settle

LONGEST = 4_000  # characters of a note


class NoteInput(serializers.Serializer[Any]):
    """A note; `client_id` makes repeats harmless, `version` is the criterion version that was read."""

    client_id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=RaterNote.Kind.choices)
    criterion = serializers.CharField(required=False)
    text = serializers.CharField(required=False, allow_blank=True, default="", max_length=LONGEST)
    version = serializers.IntegerField(required=False, min_value=1)


class NoteOutput(serializers.Serializer[RaterNote]):
    """A rater's own note."""

    id = serializers.IntegerField(source="pk")
    kind = serializers.CharField()
    criterion = serializers.CharField(source="criterion.key", allow_null=True, default=None)
    version = serializers.IntegerField(source="version.number", allow_null=True, default=None)
    text = serializers.CharField()
    created_at = serializers.DateTimeField()
    settled = serializers.SerializerMethodField()

    def get_settled(self, note: RaterNote) -> bool:
        """Whether it was dealt with."""
        return note.settled_at is not None


class AnyNoteOutput(NoteOutput):
    """A note as authors and leads see it."""

    chat = serializers.CharField(source="chat.external_id")
    rater = serializers.CharField(source="rater.name")
    settled_by = serializers.CharField(source="settled_by.username", allow_null=True, default=None)
    settled_at = serializers.DateTimeField(allow_null=True)


class AssignmentNotesApi(RaterView):
    """Notes on one chat."""

    @extend_schema(
        operation_id="note_add",
        request=NoteInput,
        responses={200: NoteOutput, 201: NoteOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        """Add a note; the same `client_id` again changes nothing and answers 200."""
        assignment = self.own(assignment_id)
        given = NoteInput(data=request.data)
        given.is_valid(raise_exception=True)
        values = dict(given.validated_data)
        if key := values.pop("criterion", None):
            values["criterion"] = asked_criterion(job_id=assignment.job_id, key=key)
            if values["criterion"] is None:
                raise Http404
        added = note_add(rater=self.rater, assignment=assignment, **values)
        code = status.HTTP_201_CREATED if added.new else status.HTTP_200_OK
        return Response(NoteOutput(added.note).data, status=code)


class NotePages(CursorPagination):
    """Newest first, 50 a page."""

    page_size = 50
    ordering = "-pk"


class NotesApi(ListAPIView[RaterNote]):
    """Notes of all raters."""

    permission_classes = [WritesTexts]
    serializer_class = AnyNoteOutput
    pagination_class = NotePages

    def get_queryset(self) -> Any:
        """Those that this user may read, narrowed by the query."""
        given = {name: self.request.query_params.get(name, "") for name in ("kind", "criterion", "state")}
        allowed = {"kind": RaterNote.Kind.values, "state": ["open", "settled"]}
        for name, values in allowed.items():
            if given[name] and given[name] not in values:
                raise ValidationError({name: [f"Must be one of {', '.join(values)}."]})
        rows = NoteFilter(**given).of(notes_for(user=self.request.user))
        rows = rows.select_related("chat", "rater", "criterion", "version", "settled_by")
        return rows.defer("chat__messages", "chat__metadata")

    @extend_schema(
        operation_id="notes",
        parameters=[
            OpenApiParameter("kind", enum=RaterNote.Kind.values),
            OpenApiParameter("criterion", description="A criterion's key."),
            OpenApiParameter("state", enum=["open", "settled"]),
        ],
        responses={200: AnyNoteOutput(many=True), 400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Notes, newest first: a lead reads all, an author the unclear criteria outside holdout."""
        return super().get(request, *args, **kwargs)


class NoteSettleApi(APIView):
    """One note dealt with."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="note_settle",
        request=None,
        responses={200: AnyNoteOutput, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def post(self, request: Request, note_id: int) -> Response:
        """Settle a note; a second time changes nothing."""
        user = cast(User, request.user)
        note = notes_for(user=user).filter(pk=note_id).first()
        if note is None:
            raise Http404
        return Response(AnyNoteOutput(note_settle(note=note, by=user)).data)
