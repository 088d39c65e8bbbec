"""Misalignments over HTTP: list, read, triage."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.misalignments.queries.detail import hostile_flags
from alignment.misalignments.queries.misalignment_list import (
    STATES,
    UNTRIAGED,
    Found,
    MisalignmentFilter,
    MisalignmentRow,
    closed_runs,
    listed,
    misalignment_rows,
    misalignments_listed,
    misalignments_shown,
)
from alignment.misalignments.services import (
    LONGEST,
    ChangedMeanwhile,
    NothingToUndo,
    Triage,
    misalignment_triage,
    misalignment_undo,
)
from alignment.models.misalignments import Misalignment, TriageChange
from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, Permitted, problem
from common.problems import InputProblem
from labeling.models.people import User


class SeesJudge(Permitted):
    """Leads and authors; only who may change prompts triages."""

    permission = "labeling.see_judge"


class Triages(Permitted):
    """Who may change prompts; they read the judge anyway."""

    permission = "labeling.edit_prompts"


class SeesAndTriages(SeesJudge):
    """Reading asks for the one right, triage for both."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """As its parts; 404 where one is missing."""
        allowed = super().has_permission(request, view)
        return allowed and (request.method == "GET" or Triages().has_permission(request, view))


class TriageInput(serializers.Serializer[Any]):
    """What changes; `revision` is the one that was read."""

    revision = serializers.IntegerField(min_value=0)
    cause = serializers.ChoiceField(choices=Misalignment.Cause.choices, allow_blank=True, required=False)
    note = serializers.CharField(allow_blank=True, required=False, max_length=LONGEST, trim_whitespace=False)
    owner = serializers.CharField(allow_blank=True, required=False, max_length=150)


class MisalignmentOutput(serializers.Serializer[MisalignmentRow]):
    """A misalignment; `human` and `judge` are what both say now."""

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
    rationale = serializers.CharField(source="said")
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
    """What one act of triage changed: `was` and `now` hold what changed alone."""

    by = serializers.CharField(source="by.username")
    at = serializers.DateTimeField()
    was = serializers.DictField(child=serializers.CharField(allow_blank=True))
    now = serializers.DictField(child=serializers.CharField(allow_blank=True))
    undoes = serializers.BooleanField(source="took_back", help_text="It took an earlier change back.")


class MisalignmentWhole(MisalignmentOutput):
    """A misalignment with all that was done to it, newest first."""

    suggested = serializers.SerializerMethodField(help_text="injection where the chat may be hostile.")
    history = TriageChangeOutput(many=True, source="item.history")

    def get_suggested(self, row: MisalignmentRow) -> str:
        """The cause that the chat's flags point to; '' where none does."""
        return Misalignment.Cause.INJECTION.value if hostile_flags(row.item, row.verdict) else ""


class MisalignmentPages(LimitOffsetPagination):
    """In the list's order, 50 a page, 200 at most."""

    default_limit = 50
    max_limit = 200


FILTERS = [
    OpenApiParameter("criterion", str, description="A criterion's key."),
    OpenApiParameter("cause", str, enum=[*Misalignment.Cause.values, UNTRIAGED]),
    OpenApiParameter("state", str, enum=list(STATES), description="Without it all that are not closed."),
    OpenApiParameter("owner", str, description="A user's name, me or nobody."),
    OpenApiParameter("run", int, description="Seen in this run."),
    OpenApiParameter("set", int, description="Seen in a run over this chat set."),
    OpenApiParameter("limit", int),
    OpenApiParameter("offset", int),
]


class MisalignmentList(APIView):
    """Misalignments that you may read."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="misalignments",
        parameters=FILTERS,
        responses={200: MisalignmentOutput(many=True), 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request) -> Response:
        """Those that the query asks for: {count, next, previous, results}."""
        user = cast(User, request.user)
        only = MisalignmentFilter.read(request.query_params)
        pages = MisalignmentPages()
        shown = misalignments_listed(user=user, without=closed_runs(user=user))
        found: Any = Found(shown, only, user=user)
        items: Any = pages.paginate_queryset(found, request, view=self) or []
        rows: Any = misalignment_rows(items)
        return pages.get_paginated_response(MisalignmentOutput(rows, many=True).data)


class MisalignmentDetail(APIView):
    """One misalignment."""

    permission_classes = [SeesAndTriages]

    @extend_schema(
        operation_id="misalignment",
        responses={200: MisalignmentWhole, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, misalignment_id: int) -> Response:
        """What is known of it, and who did what."""
        return answer(request, misalignment_id)

    @extend_schema(
        operation_id="misalignment_triage",
        request=TriageInput,
        responses={200: MisalignmentWhole, 400: WRONG, **PROBLEMS},
    )
    def patch(self, request: Request, misalignment_id: int) -> Response:
        """Set cause, note or owner; 409 where somebody else did meanwhile."""
        given = TriageInput(data=request.data)
        given.is_valid(raise_exception=True)
        values = dict(given.validated_data)
        seen = values.pop("revision")
        user = cast(User, request.user)
        item = get_object_or_404(misalignments_shown(user=user), pk=misalignment_id)
        try:
            misalignment_triage(misalignment_id=item.pk, change=Triage(**values), seen=seen, by=user)
        except ChangedMeanwhile as meanwhile:
            raise problem("changed", str(meanwhile)) from meanwhile
        except InputProblem as wrong:
            raise ValidationError({"owner": [str(wrong)]}) from wrong
        return answer(request, misalignment_id)


class MisalignmentUndo(APIView):
    """The way back."""

    permission_classes = [Triages]

    @extend_schema(
        operation_id="misalignment_undo", request=None, responses={200: MisalignmentWhole, **PROBLEMS}
    )
    def post(self, request: Request) -> Response:
        """Take back what you changed last; 409 where nothing is left."""
        user = cast(User, request.user)
        try:
            item = misalignment_undo(among=misalignments_shown(user=user), by=user)
        except NothingToUndo as nothing:
            raise problem("nothing", str(nothing)) from nothing
        return answer(request, item.pk)


def answer(request: Request, misalignment_id: int) -> Response:
    """One item as it is now; 404 where it is not shown."""
    item = get_object_or_404(listed(misalignments_shown(user=request.user)), pk=misalignment_id)
    (row,) = misalignment_rows([item])
    return Response(MisalignmentWhole(row).data)
