"""REST of adjudication: queue, one item, deciding and withdrawing; the Dawid–Skene consensus of a set."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, AnswerInput, ConflictResponse
from common.problems import FieldProblem
from labeling.adjudication.forms import AdjudicationFilterForm
from labeling.adjudication.queries.item import AdjudicationItem, adjudication_item
from labeling.adjudication.queries.queue import Kind, QueueItem, queue_items, queue_rows
from labeling.adjudication.services import (
    REASON_LIMIT,
    DecidedMeanwhileError,
    adjudication_decide,
    adjudication_withdraw,
)
from labeling.consensus.queries import dawid_skene_of, likely_cells, likely_rows
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import Adjudication
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.queries.visibility import chats_shown

# ---------- what goes in and out ----------


class ItemRowOutput(serializers.Serializer[QueueItem]):
    """One item of the queue; `url` is where it is read and decided."""

    url = serializers.SerializerMethodField()
    chat_id = serializers.CharField(source="external_id")
    criterion = serializers.CharField()
    topic = serializers.CharField()
    state = serializers.CharField()
    by = serializers.CharField()
    n_true = serializers.IntegerField()
    n_false = serializers.IntegerField()
    n_na = serializers.IntegerField()
    flagged = serializers.BooleanField()

    def get_url(self, item: QueueItem) -> str:
        """The item's own route."""
        return reverse("api_adjudicate", args=[item.chat_id, item.criterion])


class DecisionOutput(serializers.Serializer[Adjudication]):
    """A decision; `id` is what the next decision or the withdrawal must have seen."""

    id = serializers.IntegerField()
    value = serializers.BooleanField(allow_null=True)
    reason = serializers.CharField()
    adjudicated_by = serializers.CharField(source="by_name")
    created_at = serializers.DateTimeField()
    replaced_at = serializers.DateTimeField(allow_null=True)


class RaterLabelOutput(serializers.Serializer[Any]):
    """A label without its rater's name."""

    rater = serializers.CharField(source="letter")
    value = serializers.BooleanField(allow_null=True)
    rationale = serializers.CharField()
    evidence = serializers.ListField(child=serializers.DictField())
    version = serializers.IntegerField()
    outdated = serializers.BooleanField()
    counts = serializers.BooleanField()
    created_at = serializers.DateTimeField(source="given_at")


class RaterRemarkOutput(serializers.Serializer[Any]):
    """What a rater said beside the labels; `rater` is '' for one without a label here."""

    rater = serializers.CharField(source="letter")
    kind = serializers.CharField()
    text = serializers.CharField()
    settled = serializers.BooleanField()


class AdjudicationItemOutput(serializers.Serializer[AdjudicationItem]):
    """All that a lead decides by; nothing of the judge."""

    chat_id = serializers.CharField(source="chat.external_id")
    messages = serializers.ListField(child=serializers.DictField(), source="chat.messages")
    criterion = serializers.CharField(source="criterion.key")
    version = serializers.IntegerField(source="version.number")
    question = serializers.CharField(source="version.question")
    definition = serializers.CharField(source="version.definition")
    allow_na = serializers.BooleanField(source="version.allow_na")
    state = serializers.CharField(source="consensus.state", default=None, allow_null=True)
    by = serializers.CharField(source="consensus.by", default=None, allow_null=True)
    labels = RaterLabelOutput(many=True)
    left_out = serializers.IntegerField()
    notes = RaterRemarkOutput(many=True)
    decision = DecisionOutput(allow_null=True)
    history = DecisionOutput(many=True)


class DecisionInput(AnswerInput):
    """A decision; `seen` is the id of the decision in force that was read, null for none."""

    reason = serializers.CharField(max_length=REASON_LIMIT)
    seen = serializers.IntegerField(allow_null=True, required=False, default=None)


class RatesOutput(serializers.Serializer[Any]):
    """How a rater answers by the model; null: no such chat."""

    rater = serializers.CharField()
    labels = serializers.IntegerField()
    sensitivity = serializers.FloatField(allow_null=True)
    specificity = serializers.FloatField(allow_null=True)


class LikelyOutput(serializers.Serializer[Any]):
    """The most likely answer on a chat, beside what counts."""

    chat_id = serializers.CharField()
    dawid_skene = serializers.CharField()
    probability = serializers.FloatField()
    consensus = serializers.CharField(allow_null=True)
    by = serializers.CharField(allow_null=True)


class DawidSkeneOutput(serializers.Serializer[Any]):
    """An estimate beside the consensus, which it never changes; with a `reason` there is none."""

    set = serializers.CharField()
    criterion = serializers.CharField()
    labels = serializers.IntegerField()
    shares = serializers.DictField(child=serializers.FloatField())
    iterations = serializers.IntegerField()
    converged = serializers.BooleanField()
    reason = serializers.CharField()
    raters = RatesOutput(many=True)
    chats = LikelyOutput(many=True)
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


# ---------- routes ----------


class AdjudicationPages(CursorPagination):
    """The most disputed first, 100 a page."""

    page_size = 100
    ordering = "place"


class LeadView(APIView):
    """Routes of a lead."""

    permission_classes = [ManagesLabeling]

    @property
    def user(self) -> User:
        """The lead who is signed in."""
        return cast(User, self.request.user)

    def item(self, chat_id: int, key: str) -> tuple[Chat, Criterion]:
        """A chat that the lead may see, and a criterion."""
        chats = chats_shown(user=self.user).select_related("topic")
        return get_object_or_404(chats, pk=chat_id), get_object_or_404(Criterion, key=key)

    def handle_exception(self, exc: Exception) -> Response:
        """The services' own errors as 400 and 409; the 409 holds the decision in force."""
        if isinstance(exc, DecidedMeanwhileError):
            decision = DecisionOutput(exc.current).data if exc.current else None
            error = ConflictResponse()
            error.detail = cast(Any, {"detail": str(exc), "code": "stale", "decision": decision})
            exc = error
        elif isinstance(exc, FieldProblem):
            exc = ValidationError({exc.field: [exc.message]})
        return super().handle_exception(exc)


class AdjudicationQueueApi(LeadView):
    """The queue."""

    @extend_schema(
        operation_id="adjudication_queue",
        parameters=[
            OpenApiParameter("kind", OpenApiTypes.STR, enum=Kind.values),
            OpenApiParameter("set", OpenApiTypes.INT),
            OpenApiParameter("job", OpenApiTypes.INT),
            OpenApiParameter("criterion", OpenApiTypes.STR),
            OpenApiParameter("dimension", OpenApiTypes.STR),
            OpenApiParameter("topic", OpenApiTypes.STR),
        ],
        responses={
            200: OpenApiResponse(ItemRowOutput(many=True), description="One page: next, previous, results"),
            400: WRONG,
            403: FORBIDDEN,
            404: NOT_FOUND,
        },
    )
    def get(self, request: Request) -> Response:
        """Pairs of chat and criterion on which raters disagree, the most disputed first."""
        asked = AdjudicationFilterForm(request.query_params)
        if not asked.is_valid():
            raise ValidationError(
                {name: [str(error) for error in errors] for name, errors in asked.errors.items()}
            )
        pages = AdjudicationPages()
        found = queue_items(filters=asked.filters(), user=self.user)
        page = pages.paginate_queryset(found, request, view=self)
        rows = [ItemRowOutput(row).data for row in queue_rows(page or [])]
        return pages.get_paginated_response(rows)


class AdjudicateApi(LeadView):
    """One item."""

    @extend_schema(
        operation_id="adjudication",
        responses={200: AdjudicationItemOutput, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, chat_id: int, criterion_key: str) -> Response:
        """The chat, the labels without names, the notes and the decisions."""
        chat, criterion = self.item(chat_id, criterion_key)
        return Response(AdjudicationItemOutput(adjudication_item(chat=chat, criterion=criterion)).data)

    @extend_schema(
        operation_id="adjudication_decide",
        request=DecisionInput,
        responses={200: DecisionOutput, 400: WRONG, **PROBLEMS},
    )
    def put(self, request: Request, chat_id: int, criterion_key: str) -> Response:
        """Put a decision in force; the same again changes nothing. 409 `stale`: not `seen` is in force."""
        chat, criterion = self.item(chat_id, criterion_key)
        given = DecisionInput(data=request.data)
        given.is_valid(raise_exception=True)
        row = adjudication_decide(chat=chat, criterion=criterion, by=self.user, **given.validated_data)
        return Response(DecisionOutput(row).data)

    @extend_schema(
        operation_id="adjudication_withdraw",
        parameters=[OpenApiParameter("seen", OpenApiTypes.INT, required=True)],
        responses={204: None, 400: WRONG, **PROBLEMS},
    )
    def delete(self, request: Request, chat_id: int, criterion_key: str) -> Response:
        """Take the decision back: the majority of the labels counts again."""
        chat, criterion = self.item(chat_id, criterion_key)
        seen = serializers.IntegerField().run_validation(request.query_params.get("seen"))
        adjudication_withdraw(chat=chat, criterion=criterion, by=self.user, seen=seen)
        return Response(status=status.HTTP_204_NO_CONTENT)


class LikelyPages(CursorPagination):
    """Chats in the order they were added."""

    page_size = 1000
    page_size_query_param = "page_size"
    max_page_size = 1000
    ordering = "chat_id"


class DawidSkeneApi(LeadView):
    """The estimate beside the consensus."""

    @extend_schema(
        operation_id="dawid_skene",
        parameters=[
            OpenApiParameter("page_size", OpenApiTypes.INT, description="chats a page, up to 1,000"),
            OpenApiParameter("cursor", OpenApiTypes.STR, description="as in `next` and `previous`"),
        ],
        responses={200: DawidSkeneOutput, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, set_id: int, criterion_key: str) -> Response:
        """Computed now from the labels of the set, nothing is stored; `chats` come a page at a time."""
        chat_set = get_object_or_404(ChatSet, pk=set_id)
        criterion = get_object_or_404(Criterion, key=criterion_key, rubric=chat_set.rubric_id)
        model = dawid_skene_of(criterion=criterion, chat_set=chat_set)
        pages = LikelyPages()
        cells = likely_cells(criterion=criterion, chat_set=chat_set, user=self.user)
        page = pages.paginate_queryset(cells, request, view=self) or []
        body = {
            "set": chat_set.name,
            "criterion": criterion.key,
            "labels": model.labels,
            "shares": model.shares,
            "iterations": model.iterations,
            "converged": model.converged,
            "reason": model.reason,
            "raters": model.raters,
            "chats": likely_rows(model=model, cells=page),
            "next": pages.get_next_link(),
            "previous": pages.get_previous_link(),
        }
        return Response(DawidSkeneOutput(body).data)
