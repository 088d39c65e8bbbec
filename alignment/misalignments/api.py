"""API of disagreements: list, read, triage and undo."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.comparison.core.outcomes import Outcome
from alignment.misalignments.queries.misalignment_list import (
    ME,
    NOBODY,
    STATES,
    UNTRIAGED,
    DisagreementSelection,
    MisalignmentFilter,
    MisalignmentRow,
    hidden_runs,
    misalignment_rows,
    misalignments_listed,
    misalignments_shown,
    with_row_data,
)
from alignment.misalignments.queries.triage import hostile_flags
from alignment.misalignments.services import (
    LONGEST,
    ChangedMeanwhile,
    NothingToUndo,
    Triage,
    misalignment_triage,
    misalignment_undo,
)
from alignment.models.misalignments import Misalignment, TriageChange
from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    ApiView,
    PagedList,
    QueryInput,
    StrictInput,
    choice_parameter,
    field_error,
    problem,
    row_parameter,
    validated,
)
from common.problems import FieldProblem, InputProblem
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric
from labeling.people.api.permissions import ManagesLabeling, SeesJudge, WritesTexts
from labeling.sets.services import SPLITS_BY_HAND, chats_add

MOST_AT_ONCE = 200
NO_RUN: dict[str, Any] = dict.fromkeys(
    ("does_not_exist", "incorrect_type"), "run must be the number of a run that you can see."
)


class SeesAndTriages(SeesJudge):
    """Reading requires `see_judge`, triage also `edit_prompts`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Check one permission or both. Raises Http404 without them."""
        allowed = super().has_permission(request, view)
        return allowed and (request.method == "GET" or WritesTexts().has_permission(request, view))


class TriageInput(serializers.Serializer[Any]):
    """A change of cause, note or owner; `revision` is the one that you read."""

    revision = serializers.IntegerField(min_value=0)
    cause = serializers.ChoiceField(choices=Misalignment.Cause.choices, allow_blank=True, required=False)
    note = serializers.CharField(allow_blank=True, required=False, max_length=LONGEST, trim_whitespace=False)
    owner = serializers.CharField(allow_blank=True, required=False, max_length=150)


class MisalignmentOutput(serializers.Serializer[MisalignmentRow]):
    """A disagreement; `human` is the consensus now, `judge` the verdict now."""

    id = serializers.IntegerField(source="item.pk")
    chat = serializers.CharField(source="item.chat.external_id")
    criterion = serializers.CharField(source="item.criterion.key")
    state = serializers.ChoiceField(source="item.state", choices=Misalignment.State.choices)
    cause = serializers.ChoiceField(source="item.cause", choices=Misalignment.Cause.choices, allow_blank=True)
    note = serializers.CharField(source="item.note")
    owner = serializers.CharField(source="item.owner.username", allow_null=True, default=None)
    returned = serializers.BooleanField(source="item.returned")
    revision = serializers.IntegerField(source="item.revision")
    human = serializers.CharField()
    judge = serializers.BooleanField(source="verdict.value", allow_null=True, default=None)
    outcome = serializers.ChoiceField(
        choices=[Outcome.MISSED_FAILURE.value, Outcome.FALSE_ALARM.value],
        allow_blank=True,
        help_text="Missed failure: judge passed, raters failed. False alarm: judge failed, raters passed.",
    )
    rationale = serializers.CharField()
    run = serializers.IntegerField(source="item.newest_run_id")
    closed_by = serializers.ChoiceField(
        source="item.closed_by", choices=Misalignment.ClosedBy.choices, allow_blank=True
    )
    closed_by_version = serializers.IntegerField(
        source="item.closed_by_version.number", allow_null=True, default=None
    )
    closed_at = serializers.DateTimeField(source="item.closed_at", allow_null=True)
    changed_by = serializers.CharField(source="item.changed_by.username", allow_null=True, default=None)
    changed_at = serializers.DateTimeField(source="item.changed_at", allow_null=True)


class TriageChangeOutput(serializers.Serializer[TriageChange]):
    """A change in triage; `was` and `now` contain only the changed fields."""

    by = serializers.CharField(source="by.username")
    at = serializers.DateTimeField()
    was = serializers.DictField(child=serializers.CharField(allow_blank=True))
    now = serializers.DictField(child=serializers.CharField(allow_blank=True))
    undoes = serializers.BooleanField(source="took_back", help_text="True for an undo.")


class MisalignmentWhole(MisalignmentOutput):
    """A disagreement with its history, newest first."""

    suggested = serializers.SerializerMethodField(
        help_text="`injection` if the chat was flagged for prompt injection."
    )
    history = TriageChangeOutput(many=True, source="item.history")

    def get_suggested(self, row: MisalignmentRow) -> str:
        """Return the cause that the chat's flags suggest, or ''."""
        return Misalignment.Cause.INJECTION.value if hostile_flags(row.item, row.verdict) else ""


class OpenRun(serializers.PrimaryKeyRelatedField[Run]):
    """A run that the user may open."""

    def get_queryset(self) -> QuerySet[Run]:
        """Return these runs."""
        return runs_open_to(self.context["request"].user)


class DisagreementQuery(QueryInput):
    """Filters of disagreements."""

    criterion = row_parameter("criterion", Criterion.objects.all(), "key", help_text="Key of a criterion.")
    cause = choice_parameter("cause", [*Misalignment.Cause.values, UNTRIAGED])
    state = choice_parameter(
        "state", [state for state in STATES if state], help_text="Default: all that are not closed."
    )
    owner = serializers.CharField(required=False, help_text="A user's name, me or nobody.")
    run = OpenRun(
        queryset=Run.objects.all(), required=False, help_text="Found in this run.", error_messages=NO_RUN
    )
    set = row_parameter(
        "chat set", ChatSet.objects.all(), "name", help_text="Found in a run over this chat set."
    )

    def validate_owner(self, owner: str) -> str:
        """Refuse a name that no account has."""
        if owner not in (ME, NOBODY) and not User.objects.filter(username=owner).exists():
            raise serializers.ValidationError(f"There is no owner {owner!r}.")
        return owner


@extend_schema_view(
    get=extend_schema(
        operation_id="misalignments",
        responses={200: MisalignmentOutput(many=True), **NO_ACCESS},
    )
)
class MisalignmentList(PagedList[Any]):
    """Disagreements in chats that you can see: {count, next, previous, results}."""

    permission_classes = [SeesJudge]
    query_classes: ClassVar = {"GET": DisagreementQuery}
    serializer_class = MisalignmentOutput
    queryset = Misalignment.objects.all()  # for the OpenAPI schema: get_queryset counts rows
    page_style = "offset"
    page_size = 50
    largest_page = 200

    def get_queryset(self) -> Any:
        """Return the disagreements that the query selects, in the order of the page."""
        user = cast(User, self.request.user)
        only = MisalignmentFilter(
            **{name: self.query[name] for name in ("cause", "state", "owner") if name in self.query},
            criterion=self.query["criterion"].key if "criterion" in self.query else "",
            run=self.query["run"].pk if "run" in self.query else 0,
            chat_set=self.query["set"].pk if "set" in self.query else 0,
        )
        shown = misalignments_listed(user=user, without=hidden_runs(user=user))
        return DisagreementSelection(shown, only, user=user)

    def results(self, page: Sequence[Misalignment]) -> Any:
        """Return the page's disagreements with consensus and verdict."""
        return super().results(misalignment_rows(page))


class MisalignmentDetail(ApiView):
    """One disagreement."""

    permission_classes = [SeesAndTriages]

    @extend_schema(
        operation_id="misalignment",
        responses={200: MisalignmentWhole, **NO_ACCESS},
    )
    def get(self, request: Request, misalignment_id: int) -> Response:
        """The disagreement with its triage history."""
        return _detail(request, misalignment_id)

    @extend_schema(
        operation_id="misalignment_triage",
        request=TriageInput,
        responses={200: MisalignmentWhole, 400: INVALID, **PROBLEMS},
    )
    def patch(self, request: Request, misalignment_id: int) -> Response:
        """Set cause, note or owner. 409 if somebody else has changed it since `revision`."""
        values = validated(TriageInput, request.data)
        seen = values.pop("revision")
        user = cast(User, request.user)
        item = get_object_or_404(misalignments_shown(user=user), pk=misalignment_id)
        try:
            misalignment_triage(misalignment_id=item.pk, change=Triage(**values), seen=seen, by=user)
        except ChangedMeanwhile as meanwhile:
            raise problem("changed", str(meanwhile)) from meanwhile
        except InputProblem as wrong:
            raise ValidationError({"owner": [str(wrong)]}) from wrong
        except FieldProblem as wrong:
            raise field_error(wrong) from wrong
        return _detail(request, misalignment_id)


class MisalignmentUndo(ApiView):
    """Undo of the last triage change."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="misalignment_undo", request=None, responses={200: MisalignmentWhole, **PROBLEMS}
    )
    def post(self, request: Request) -> Response:
        """Undo your last change. 409 when no change is left to undo."""
        user = cast(User, request.user)
        try:
            item = misalignment_undo(among=misalignments_shown(user=user), by=user)
        except NothingToUndo as nothing:
            raise problem("nothing", str(nothing)) from nothing
        return _detail(request, item.pk)


class ToSetInput(StrictInput):
    """Disagreements whose chats are added to a set; `new` creates the set of that name."""

    misalignments = serializers.ListField(
        child=serializers.IntegerField(min_value=1), allow_empty=False, max_length=MOST_AT_ONCE
    )
    set = serializers.CharField(max_length=120, help_text="Name of the chat set.")
    new = serializers.BooleanField(default=False)
    split = serializers.ChoiceField(choices=[split.value for split in SPLITS_BY_HAND])


class ToSetOutput(serializers.Serializer[Any]):
    """The set, its page, and the numbers of chats added and of those that were in it already."""

    set = serializers.CharField(source="chat_set.name")
    url = serializers.SerializerMethodField()
    added = serializers.IntegerField()
    kept = serializers.IntegerField()

    def get_url(self, added: Any) -> str:
        """Return the page of the set."""
        return reverse("labeling:set_detail", args=[added.chat_set.pk])


class MisalignmentsToSet(ApiView):
    """Chats of disagreements, added to a chat set."""

    permission_classes = [SeesJudge, ManagesLabeling]

    @extend_schema(
        operation_id="misalignments_to_set",
        request=ToSetInput,
        responses={200: ToSetOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request) -> Response:
        """Add the chats of these disagreements to a chat set; chats that are in it stay as they are."""
        values = validated(ToSetInput, request.data)
        user, ids = cast(User, request.user), set(values["misalignments"])
        rows = misalignments_shown(user=user).filter(pk__in=ids)
        places = dict(rows.values_list("pk", "chat_id"))
        if len(places) < len(ids):
            raise ValidationError({"misalignments": ["One of these disagreements does not exist."]})
        rubrics = list(Rubric.objects.filter(criteria__in=rows.values("criterion")).distinct())
        if len(rubrics) > 1:
            raise ValidationError({"misalignments": ["Select disagreements of one rubric."]})
        try:
            added = chats_add(
                name=values["set"],
                new=values["new"],
                rubric=rubrics[0],
                chats=set(places.values()),
                split=values["split"],
                by=user,
            )
        except InputProblem as wrong:
            raise ValidationError({"set": [str(wrong)]}) from wrong
        return Response(ToSetOutput(added).data)


def _detail(request: Request, misalignment_id: int) -> Response:
    """Answer with a disagreement in its current state. Raises Http404."""
    item = get_object_or_404(with_row_data(misalignments_shown(user=request.user)), pk=misalignment_id)
    (row,) = misalignment_rows([item])
    return Response(MisalignmentWhole(row).data)
