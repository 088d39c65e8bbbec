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

from common.api import INVALID, NO_ACCESS, DownloadView, PagedList, field_error
from common.files import csv_lines, json_line
from common.problems import FieldProblem
from labeling.models.chats import ChatSet
from labeling.models.labels import Label
from labeling.models.people import User
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.services.audit import audit
from labeling.sets.queries import SetRow, set_rows
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
        except FieldProblem as problem:
            raise field_error(problem) from problem

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
