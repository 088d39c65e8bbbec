"""API for leads: chat sets, labels in pages, and exports as downloads."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.access import found_or_404
from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    ApiView,
    DownloadView,
    PagedList,
    QueryInput,
    StrictInput,
    field_error,
    problem,
    row_parameter,
    validated,
)
from common.downloads import TYPES, lines_file
from common.problems import FieldProblem, InputProblem
from labeling.chats.services.chat_sets import KINDS
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import Label
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion, Rubric
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.services.audit import audit
from labeling.sets.queries import SetRow, set_rows
from labeling.sets.services import (
    SPLITS_BY_HAND,
    AddedChats,
    UnconfirmedError,
    chat_set_kind_change,
    chats_add,
)
from labeling.transfer.queries.exports import LABELLING, label_line
from labeling.transfer.queries.label_list import labels_for

MOST_CHATS = 5000  # of one request, as in a request that sends chats
UNKNOWN_NAMED = 5


class SetOutput(serializers.Serializer[SetRow]):
    """A chat set with its numbers of chats and open jobs."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.CharField()
    rubric = serializers.CharField()
    chats = serializers.IntegerField()
    train = serializers.IntegerField()
    dev = serializers.IntegerField()
    holdout = serializers.IntegerField()
    labelled = serializers.IntegerField()
    open_jobs = serializers.IntegerField()


class SetsOutput(serializers.Serializer[Any]):
    """Chat sets."""

    sets = SetOutput(many=True)


class SetQuery(QueryInput):
    """Which chat sets."""

    plan = serializers.IntegerField(
        required=False, min_value=1, help_text="Id of a sample plan: the sets that it made, newest first."
    )


class SetChatsInput(StrictInput):
    """Stored chats that are added to a set, by their ids; a set that does not exist is created."""

    set = serializers.CharField(max_length=120, help_text="Name of the chat set.")
    rubric = serializers.CharField(
        max_length=200, required=False, help_text="Of a new set; optional while the workspace has one rubric."
    )
    source = serializers.CharField(  # type: ignore[assignment]  # the name of the field in the body
        max_length=80,
        default="",
        allow_blank=True,
        help_text="The source under which the chats were sent; '' for chats of files.",
    )
    split = serializers.ChoiceField(choices=[split.value for split in SPLITS_BY_HAND], default="dev")
    chats = serializers.ListField(
        child=serializers.CharField(max_length=200), allow_empty=False, max_length=MOST_CHATS
    )


class SetChatsOutput(serializers.Serializer[AddedChats]):
    """The set, and the numbers of chats added and of those that were in it already and stay as they are."""

    id = serializers.IntegerField(source="chat_set.pk")
    set = serializers.CharField(source="chat_set.name")
    added = serializers.IntegerField()
    kept = serializers.IntegerField()


class SetList(ApiView):
    """The chat sets."""

    permission_classes = [ManagesLabeling]
    query_classes = {"GET": SetQuery}

    @extend_schema(operation_id="sets", responses={200: SetsOutput, **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """Every chat set by name, with the id that other addresses use; those of sample plans by `plan`."""
        plan = self.query.get("plan")
        sets = ChatSet.objects.of_plan(plan).order_by("-pk") if plan else None
        return Response(SetsOutput({"sets": set_rows(user=request.user, sets=sets)}).data)

    @extend_schema(
        operation_id="set_chats_add",
        request=SetChatsInput,
        responses={200: SetChatsOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request) -> Response:
        """Add stored chats to a chat set; the same request again changes nothing."""
        body, user = validated(SetChatsInput, request.data), cast(User, request.user)
        try:
            added = chats_add(
                name=body["set"],
                new=not ChatSet.objects.filter(name=body["set"]).exists(),
                rubric=_rubric(body),
                chats=_chat_ids(body, user),
                split=body["split"],
                by=user,
            )
        except FieldProblem as wrong:
            raise field_error(wrong) from wrong
        except InputProblem as wrong:
            raise field_error(FieldProblem("set", str(wrong))) from wrong
        return Response(SetChatsOutput(added).data)


def _rubric(body: dict[str, Any]) -> Rubric:
    """Return the named rubric, the set's, or the only one. Raises FieldProblem."""
    chat_set = ChatSet.objects.select_related("rubric").filter(name=body["set"]).first()
    if chat_set is not None and "rubric" not in body:
        return chat_set.rubric
    rows = list(Rubric.objects.filter(**({"name": body["rubric"]} if "rubric" in body else {}))[:2])
    if len(rows) == 1:
        return rows[0]
    if "rubric" in body:
        raise FieldProblem("rubric", f"There is no rubric {body['rubric']!r}.")
    raise FieldProblem("rubric", "Name the rubric of the new set." if rows else "There is no rubric yet.")


def _chat_ids(body: dict[str, Any], user: User) -> set[int]:
    """Return the primary keys of the chats. Raises FieldProblem that names some unknown ones."""
    wanted = set(body["chats"])
    rows = Chat.objects.visible_to(user).filter(source=body["source"], external_id__in=wanted)
    found = dict(rows.values_list("external_id", "pk"))
    if unknown := sorted(wanted - found.keys()):
        named = ", ".join(repr(one) for one in unknown[:UNKNOWN_NAMED])
        more = f" and {len(unknown) - UNKNOWN_NAMED:,} more" if len(unknown) > UNKNOWN_NAMED else ""
        raise FieldProblem("chats", f"There is no chat {named}{more} of the source {body['source']!r}.")
    return set(found.values())


class KindInput(serializers.Serializer[Any]):
    """The new kind of a set."""

    kind = serializers.ChoiceField(choices=KINDS)
    confirmed = serializers.BooleanField(
        default=False, help_text="Gold and calibration change who may see which answers: true confirms it."
    )


class SetApi(ApiView):
    """One chat set."""

    permission_classes = [ManagesLabeling]

    @extend_schema(operation_id="set", responses={200: SetOutput, **NO_ACCESS})
    def get(self, request: Request, set_id: int) -> Response:
        """The chat set with its numbers of chats and open jobs."""
        return Response(SetOutput(_set_row(set_id, request)).data)

    @extend_schema(
        operation_id="set_change", request=KindInput, responses={200: SetOutput, 400: INVALID, **PROBLEMS}
    )
    def patch(self, request: Request, set_id: int) -> Response:
        """Change the kind of the set.

        409 `refused`: a job depends on the kind. 409 `unconfirmed`: read the message, then send `confirmed`.
        """
        chat_set = get_object_or_404(ChatSet, pk=set_id)
        body = validated(KindInput, request.data)
        try:
            chat_set_kind_change(chat_set=chat_set, by=cast(User, request.user), **body)
        except InputProblem as refused:
            raise problem("refused", str(refused)) from refused
        except UnconfirmedError as unconfirmed:
            raise problem("unconfirmed", str(unconfirmed)) from unconfirmed
        return Response(SetOutput(_set_row(set_id, request)).data)


def _set_row(set_id: int, request: Request) -> SetRow:
    own = ChatSet.objects.filter(pk=set_id)
    return found_or_404(next(iter(set_rows(user=request.user, sets=own)), None))


class LabelQuery(QueryInput):
    """Filters of labels."""

    set = row_parameter(
        "chat set", ChatSet.objects.all(), "name", help_text="Name: labels on its chats, by its rubric."
    )
    criterion = row_parameter("criterion", Criterion.objects.all(), "key", help_text="Key of a criterion.")
    rater = row_parameter("rater", Rater.objects.all(), "name", help_text="Name of a rater.")


class EvidenceLine(serializers.Serializer[Any]):
    """A part of a message, in code points."""

    message = serializers.IntegerField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    quote = serializers.CharField()


class LabelLine(serializers.Serializer[Any]):
    """A label as the export writes it; fields without a value are left out."""

    chat_id = serializers.CharField()
    criterion = serializers.CharField()
    rater = serializers.CharField()
    value = serializers.BooleanField(allow_null=True)
    rationale = serializers.CharField(required=False)
    turns = serializers.ListField(child=serializers.IntegerField(), required=False)
    evidence = EvidenceLine(many=True, required=False)
    kind = serializers.CharField()
    post_reveal = serializers.BooleanField(required=False)
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    active_ms = serializers.IntegerField(required=False)
    carried_from = serializers.CharField(required=False)


@extend_schema_view(
    get=extend_schema(operation_id="labels", responses={200: LabelLine(many=True), **NO_ACCESS})
)
class LabelList(PagedList[Label]):
    """Submitted labels, named as in the files, without labels on chats you cannot see."""

    permission_classes = [ManagesLabeling]
    query_classes: ClassVar = {"GET": LabelQuery}
    serializer_class = LabelLine
    page_order = "pk"  # new labels move no page
    largest_page = 1000

    def get_queryset(self) -> QuerySet[Label]:
        """Return the labels that the query selects."""
        return labels_for(
            user=cast(User, self.request.user),
            chat_set=self.query.get("set"),
            criterion=self.query.get("criterion"),
            rater=self.query.get("rater"),
        )

    def results(self, page: Sequence[Label]) -> Any:
        """Return the labels as the export writes them."""
        return [label_line(row, row.chat.external_id, row.criterion.key) for row in page]


class Export(DownloadView):
    """An export as a download."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="export",
        parameters=[
            OpenApiParameter("what", OpenApiTypes.STR, OpenApiParameter.PATH, enum=list(LABELLING)),
            OpenApiParameter("kind", OpenApiTypes.STR, OpenApiParameter.PATH, enum=list(TYPES)),
        ],
        responses={(200, kind): OpenApiTypes.STR for kind in TYPES.values()} | NO_ACCESS,
    )
    def get(self, request: Request, set_id: int, what: str, kind: str) -> StreamingHttpResponse:
        """The lines of `manage.py export`, streamed, without chats you cannot see."""
        if what not in LABELLING or kind not in TYPES:
            raise Http404
        chat_set = get_object_or_404(ChatSet, pk=set_id)
        user = cast(User, request.user)
        lines, columns = LABELLING[what]
        with transaction.atomic():
            audit(actor=user, verb="set exported", obj=chat_set, what=what, format=kind)
        return lines_file(lines(chat_set, user), columns, name=f"set-{chat_set.pk}-{what}", kind=kind)
