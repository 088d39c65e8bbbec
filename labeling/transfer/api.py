"""REST for leads: chat sets, labels page by page, and whole exports as downloads."""

from collections.abc import Iterator
from typing import Any, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api import FORBIDDEN, NOT_FOUND, WRONG
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


class LabelPages(CursorPagination):
    """In the order of the database, 100 a page unless asked otherwise; new labels move no page."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000
    ordering = "pk"


class SetOutput(serializers.Serializer[SetRow]):
    """A chat set with its counts."""

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

    @extend_schema(operation_id="sets", responses={200: SetsOutput, 403: FORBIDDEN, 404: NOT_FOUND})
    def get(self, request: Request) -> Response:
        """Every set by name, with its id for the other addresses."""
        return Response(SetsOutput({"sets": set_rows()}).data)


class LabelList(APIView):
    """Submitted labels."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
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
            400: WRONG,
            403: FORBIDDEN,
            404: NOT_FOUND,
        },
    )
    def get(self, request: Request) -> Response:
        """One page of labels, named as in the files; chats that the caller may not see are left out."""
        pages = LabelPages()
        page = pages.paginate_queryset(_asked(request), request, view=self)
        rows = [label_line(row, row.chat.external_id, row.criterion.key) for row in page or []]
        return pages.get_paginated_response(rows)


class Export(APIView):
    """A whole export as a download."""

    permission_classes = [ManagesLabeling]

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """The address says the format, whatever the header Accept says."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        operation_id="export",
        parameters=[
            OpenApiParameter("what", OpenApiTypes.STR, OpenApiParameter.PATH, enum=list(LABELLING)),
            OpenApiParameter("kind", OpenApiTypes.STR, OpenApiParameter.PATH, enum=list(TYPES)),
        ],
        responses={(200, kind): OpenApiTypes.STR for kind in TYPES.values()}
        | {403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, set_id: int, what: str, kind: str) -> StreamingHttpResponse:
        """The lines of `manage.py export`, streamed; chats that the caller may not see are left out."""
        if what not in LABELLING or kind not in TYPES:
            raise Http404
        chat_set = get_object_or_404(ChatSet, pk=set_id)
        user = cast(User, request.user)
        lines, columns = LABELLING[what]
        with transaction.atomic():
            audit(actor=user, verb="set exported", obj=chat_set, what=what, format=kind)
        given = lines(chat_set, user)
        return StreamingHttpResponse(
            csv_lines(given, columns) if kind == "csv" else _json_lines(given),
            content_type=f"{TYPES[kind]}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="set-{chat_set.pk}-{what}.{kind}"'},
        )


def _json_lines(lines: Iterator[Line]) -> Iterator[str]:
    return (json_line(line) + "\n" for line in lines)


def _asked(request: Request) -> QuerySet[Label]:
    """The labels that the address asks for; a filter that there is not, or that names nothing, is 400."""
    given = request.query_params
    if unknown := sorted(set(given) - {*FILTERS, *PAGING}):
        raise ValidationError({name: ["No such filter."] for name in unknown})
    try:
        return labels_for(
            user=cast(User, request.user), filters={name: given[name] for name in FILTERS if name in given}
        )
    except FieldProblem as problem:
        raise ValidationError({problem.field: [problem.message]}) from problem
