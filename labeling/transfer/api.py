"""API for leads: chat sets, labels in pages, and exports as downloads."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.access import found_or_404
from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    DownloadView,
    PagedList,
    field_error,
    problem,
    validated,
)
from common.files import csv_lines, json_line
from common.problems import FieldProblem, InputProblem
from labeling.chats.services.chat_sets import KINDS
from labeling.models.chats import ChatSet
from labeling.models.labels import Label
from labeling.models.people import User
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.services.audit import audit
from labeling.sets.queries import SetRow, set_rows
from labeling.sets.services import UnconfirmedError, chat_set_kind_change
from labeling.transfer.queries.exports import LABELLING, Line, label_line
from labeling.transfer.queries.label_list import labels_for

TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv"}
FILTERS = ("set", "criterion", "rater")
PAGING = ("cursor", "page_size")


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
    """Every chat set."""

    sets = SetOutput(many=True)


class SetList(APIView):
    """The chat sets."""

    permission_classes = [ManagesLabeling]

    @extend_schema(operation_id="sets", responses={200: SetsOutput, **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """Every chat set by name, with the id that other addresses use."""
        return Response(SetsOutput({"sets": set_rows()}).data)


class KindInput(serializers.Serializer[Any]):
    """The new kind of a set."""

    kind = serializers.ChoiceField(choices=KINDS)
    confirmed = serializers.BooleanField(
        default=False, help_text="Gold and calibration change who may see which answers: true confirms it."
    )


class SetApi(APIView):
    """One chat set."""

    permission_classes = [ManagesLabeling]

    @extend_schema(operation_id="set", responses={200: SetOutput, **NO_ACCESS})
    def get(self, request: Request, set_id: int) -> Response:
        """The chat set with its numbers of chats and open jobs."""
        return Response(SetOutput(_set_row(set_id)).data)

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
        return Response(SetOutput(_set_row(set_id)).data)


def _set_row(set_id: int) -> SetRow:
    return found_or_404(next(iter(set_rows(set_id=set_id)), None))


@extend_schema_view(
    get=extend_schema(
        operation_id="labels",
        parameters=[
            OpenApiParameter(
                "set", OpenApiTypes.STR, description="Name: labels on its chats, by its rubric."
            ),
            OpenApiParameter("criterion", OpenApiTypes.STR, description="Key."),
            OpenApiParameter("rater", OpenApiTypes.STR, description="Name."),
            OpenApiParameter("cursor", OpenApiTypes.STR, description="From `next` or `previous`."),
            OpenApiParameter("page_size", OpenApiTypes.INT, description="At most 1,000."),
        ],
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="One page: next, previous, results"),
            400: INVALID,
            **NO_ACCESS,
        },
    )
)
class LabelList(PagedList[Label]):
    """Submitted labels, named as in the files, without labels on chats you cannot see."""

    permission_classes = [ManagesLabeling]
    page_order = "pk"  # new labels move no page
    largest_page = 1000

    def get_queryset(self) -> QuerySet[Label]:
        """Return the labels that the query selects. Raises ValidationError for an unknown filter or name."""
        query = self.request.query_params
        if unknown := sorted(set(query) - {*FILTERS, *PAGING}):
            raise ValidationError({name: ["No such filter."] for name in unknown})
        filters = {name: query[name] for name in FILTERS if name in query}
        try:
            return labels_for(user=cast(User, self.request.user), filters=filters)
        except FieldProblem as refused:
            raise field_error(refused) from refused

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
        rows = lines(chat_set, user)
        return StreamingHttpResponse(
            csv_lines(rows, columns) if kind == "csv" else _json_lines(rows),
            content_type=f"{TYPES[kind]}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="set-{chat_set.pk}-{what}.{kind}"'},
        )


def _json_lines(lines: Iterator[Line]) -> Iterator[str]:
    return (json_line(line) + "\n" for line in lines)
