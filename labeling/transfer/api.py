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
    problem,
    row_parameter,
    validated,
)
from common.downloads import TYPES, lines_file
from common.problems import InputProblem
from labeling.chats.services.chat_sets import KINDS
from labeling.models.chats import ChatSet
from labeling.models.labels import Label
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.services.audit import audit
from labeling.sets.queries import SetRow, set_rows
from labeling.sets.services import UnconfirmedError, chat_set_kind_change
from labeling.transfer.queries.exports import LABELLING, label_line
from labeling.transfer.queries.label_list import labels_for


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
