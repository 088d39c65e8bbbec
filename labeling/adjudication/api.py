"""API of adjudication: queue, item, decision and withdrawal; the Dawid–Skene consensus of a set."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    AnswerInput,
    ApiView,
    PagedList,
    PagedView,
    Pages,
    QueryInput,
    RowOutput,
    choice_parameter,
    field_error,
    problem,
    row_parameter,
    validated,
)
from common.problems import FieldProblem
from labeling.adjudication.queries.item import AdjudicationItem, adjudication_item
from labeling.adjudication.queries.queue import Filters, Kind, QueueItem, queue_items, queue_rows
from labeling.adjudication.services import (
    REASON_LIMIT,
    DecidedMeanwhileError,
    adjudication_decide,
    adjudication_withdraw,
)
from labeling.consensus.queries import dawid_skene_of, likely_cells, likely_rows
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.labels import Adjudication, Consensus, LabelingJob
from labeling.models.people import User
from labeling.models.rubric import Criterion, Dimension
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.queries.visibility import chats_shown

# ---------- bodies ----------


class ItemRowOutput(serializers.Serializer[QueueItem]):
    """An item of the queue; read and decide it at `url`."""

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
        """Return the item's address."""
        return reverse("api_adjudicate", args=[item.chat_id, item.criterion])


class DecisionOutput(RowOutput[Adjudication]):
    """A decision; the next decision or its withdrawal sends its `id` as `seen`."""

    adjudicated_by = serializers.CharField(source="by_name")

    class Meta:
        model = Adjudication
        fields = ("id", "value", "reason", "adjudicated_by", "created_at", "replaced_at")


class RaterLabelOutput(serializers.Serializer[Any]):
    """A label, without the rater's name."""

    rater = serializers.CharField(source="letter")
    value = serializers.BooleanField(allow_null=True)
    rationale = serializers.CharField()
    evidence = serializers.ListField(child=serializers.DictField())
    version = serializers.IntegerField()
    outdated = serializers.BooleanField()
    counts = serializers.BooleanField()
    created_at = serializers.DateTimeField(source="given_at")


class RaterRemarkOutput(serializers.Serializer[Any]):
    """A rater's note; `rater` is '' for a rater without a label on this item."""

    rater = serializers.CharField(source="letter")
    kind = serializers.CharField()
    text = serializers.CharField()
    settled = serializers.BooleanField()


class AdjudicationItemOutput(serializers.Serializer[AdjudicationItem]):
    """All that a lead needs to decide, without verdicts of the judge."""

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
    """A decision; `seen` is the id of the decision in force that you read, null for none."""

    reason = serializers.CharField(max_length=REASON_LIMIT)
    seen = serializers.IntegerField(allow_null=True, required=False, default=None)


class RatesOutput(serializers.Serializer[Any]):
    """A rater's estimated sensitivity and specificity; null without chats to estimate it from."""

    rater = serializers.CharField()
    labels = serializers.IntegerField()
    sensitivity = serializers.FloatField(allow_null=True)
    specificity = serializers.FloatField(allow_null=True)


class LikelyOutput(serializers.Serializer[Any]):
    """The most likely answer on a chat, and the consensus."""

    chat_id = serializers.CharField()
    dawid_skene = serializers.CharField()
    probability = serializers.FloatField()
    consensus = serializers.CharField(allow_null=True)
    by = serializers.CharField(allow_null=True)


class DawidSkeneOutput(serializers.Serializer[Any]):
    """An estimate, which never changes the consensus; `reason` says why there is none."""

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


class LeadView(ApiView):
    """Routes of a lead."""

    permission_classes = [ManagesLabeling]

    @property
    def user(self) -> User:
        """The lead who is signed in."""
        return cast(User, self.request.user)

    def item(self, chat_number: int, key: str) -> tuple[Chat, Criterion]:
        """Return a chat that the lead may see, and a criterion. Raises Http404."""
        chats = chats_shown(user=self.user).select_related("topic")
        return get_object_or_404(chats, pk=chat_number), get_object_or_404(Criterion, key=key)

    def handle_exception(self, exc: Exception) -> Response:
        """Answer errors of the services with 400 or 409; the 409 contains the decision in force."""
        if isinstance(exc, DecidedMeanwhileError):
            decision = DecisionOutput(exc.current).data if exc.current else None
            exc = problem("stale", str(exc), decision=decision)
        elif isinstance(exc, FieldProblem):
            exc = field_error(exc)
        return super().handle_exception(exc)


class QueueQuery(QueryInput):
    """Filters of the queue."""

    kind = choice_parameter("kind", Kind.values, help_text=f"Default: {Kind.DISPUTED.value}.")
    set = row_parameter("chat set", ChatSet.objects.all(), "name", help_text="Name of a chat set.")
    job = serializers.PrimaryKeyRelatedField(
        queryset=LabelingJob.objects.all(),
        required=False,
        error_messages=dict.fromkeys(
            ("does_not_exist", "incorrect_type"), "job must be the number of a job."
        ),
    )
    criterion = row_parameter(
        "active criterion",
        Criterion.objects.filter(state=Criterion.State.ACTIVE),
        "key",
        help_text="Key of a criterion.",
    )
    dimension = row_parameter("dimension", Dimension.objects.all(), "key", help_text="Key of a dimension.")
    topic = row_parameter("topic", Topic.objects.all(), "key", help_text="Key of a topic.")


class SeenQuery(QueryInput):
    """The id of the decision in force that you read."""

    seen = serializers.IntegerField()


@extend_schema_view(
    get=extend_schema(
        operation_id="adjudication_queue",
        responses={200: ItemRowOutput(many=True), **NO_ACCESS},
    )
)
class AdjudicationQueueApi(LeadView, PagedList[Any]):
    """Pairs of chat and criterion with disagreeing raters, the most disputed first."""

    query_classes: ClassVar = {"GET": QueueQuery}
    serializer_class = ItemRowOutput
    page_order = "place"

    def get_queryset(self) -> Any:
        """Return the items that the query selects."""
        keys = {name: self.query[name].key for name in ("dimension", "topic") if name in self.query}
        rows = {name: self.query[name] for name in ("job", "criterion", "kind") if name in self.query}
        filters = Filters(chat_set=self.query.get("set"), **keys, **rows)
        return queue_items(filters=filters, user=self.user)

    def results(self, page: Sequence[Any]) -> Any:
        """Return the page's items."""
        return super().results(queue_rows(page))


class AdjudicateApi(LeadView):
    """One item."""

    query_classes: ClassVar = {"DELETE": SeenQuery}

    @extend_schema(operation_id="adjudication", responses={200: AdjudicationItemOutput, **NO_ACCESS})
    def get(self, request: Request, chat_number: int, criterion_key: str) -> Response:
        """The chat, its labels without rater names, the notes and the decisions."""
        chat, criterion = self.item(chat_number, criterion_key)
        return Response(AdjudicationItemOutput(adjudication_item(chat=chat, criterion=criterion)).data)

    @extend_schema(
        operation_id="adjudication_decide",
        request=DecisionInput,
        responses={200: DecisionOutput, 400: INVALID, **PROBLEMS},
    )
    def put(self, request: Request, chat_number: int, criterion_key: str) -> Response:
        """Put a decision in force. Repeating it changes nothing.

        409 `stale`: the decision in force is not `seen`.
        """
        chat, criterion = self.item(chat_number, criterion_key)
        body = validated(DecisionInput, request.data)
        row = adjudication_decide(chat=chat, criterion=criterion, by=self.user, **body)
        return Response(DecisionOutput(row).data)

    @extend_schema(
        operation_id="adjudication_withdraw",
        responses={204: None, 400: INVALID, **PROBLEMS},
    )
    def delete(self, request: Request, chat_number: int, criterion_key: str) -> Response:
        """Withdraw the decision: the majority of the labels counts again."""
        chat, criterion = self.item(chat_number, criterion_key)
        adjudication_withdraw(chat=chat, criterion=criterion, by=self.user, seen=self.query["seen"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class DawidSkeneApi(LeadView, PagedView[Consensus]):
    """The Dawid–Skene estimate beside the consensus."""

    page_size = 1000
    largest_page = 1000
    page_order = "chat_id"

    @extend_schema(
        operation_id="dawid_skene",
        responses={200: DawidSkeneOutput, **NO_ACCESS},
    )
    def get(self, request: Request, set_id: int, criterion_key: str) -> Response:
        """The estimate from the set's labels, with one page of its chats. It is not stored."""
        chat_set = get_object_or_404(ChatSet, pk=set_id)
        criterion = get_object_or_404(Criterion, key=criterion_key, rubric=chat_set.rubric_id)
        model = dawid_skene_of(criterion=criterion, chat_set=chat_set)
        cells = likely_cells(criterion=criterion, chat_set=chat_set, user=self.user)
        page = self.paginate_queryset(cells) or []
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
            **cast(Pages, self.paginator).links(),
        }
        return Response(DawidSkeneOutput(body).data)
