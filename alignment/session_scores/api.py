"""API of session scores: the chats of a run, as pages and as a table."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.functional import cached_property
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request

from alignment.comparison.api import REPORT_PARAMETERS
from alignment.comparison.queries.answers import knows_rater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import Scope
from alignment.session_scores.queries import COLUMNS, ScoredRun, listed_members
from common.access import found_or_404
from common.api import NO_ACCESS, DownloadView, PagedList, Pages
from common.downloads import table_file
from evaluation.models.runs import RunChat
from evaluation.runs.queries.runs import runs_open_to
from labeling.people.api.permissions import SeesJudge


class SessionScoreOutput(serializers.Serializer[Any]):
    """The session scores of a chat by the judge and, as `human_…`, by the raters."""

    chat_id = serializers.CharField()
    split = serializers.CharField(allow_blank=True)
    session_score = serializers.FloatField(
        allow_null=True,
        help_text="Share of applicable criteria that pass; 0 when a critical one fails; null without any.",
    )
    # The serializer's class has an attribute of this name; the metaclass takes the field away from it.
    partial = serializers.BooleanField(  # type: ignore[assignment]
        help_text="There is a score, and verdicts are missing."
    )
    passed = serializers.IntegerField()
    applicable = serializers.IntegerField()
    missing = serializers.IntegerField()
    critical_failed = serializers.BooleanField()
    human_session_score = serializers.FloatField(
        allow_null=True, help_text="Null also against each rater, as all fields of the raters."
    )
    human_partial = serializers.BooleanField(allow_null=True)
    human_passed = serializers.IntegerField(allow_null=True)
    human_applicable = serializers.IntegerField(allow_null=True)
    human_missing = serializers.IntegerField(allow_null=True)
    human_critical_failed = serializers.BooleanField(allow_null=True)
    subjective_counted = serializers.BooleanField()


@extend_schema_view(
    get=extend_schema(
        operation_id="run_session_scores",
        parameters=REPORT_PARAMETERS,
        responses={200: SessionScoreOutput(many=True), **NO_ACCESS},
    )
)
class RunSessionScores(PagedList[RunChat]):
    """The session scores of a run's chats, in the set's order, without chats that you cannot see."""

    permission_classes = [SeesJudge]
    serializer_class = SessionScoreOutput
    pagination_class = Pages
    page_order, page_size, largest_page = "id", 100, 1000

    @cached_property
    def scope(self) -> Scope:
        """The chats that the address selects."""
        return _scope(self.request, self.kwargs["run_id"])

    def get_queryset(self) -> QuerySet[RunChat]:
        """Return the rows of the chats that this user may see."""
        members = listed_members(self.scope, user=self.request.user).select_related("chat")
        return members.only("chat__external_id", "split")

    def results(self, page: Sequence[RunChat]) -> Any:
        """Return the scores of a page."""
        scored = ScoredRun.of(self.scope)
        return [scored.line(one) for one in scored.chats(page)]


class RunSessionScoresTable(DownloadView):
    """The session scores of a run's chats for spreadsheets."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="run_session_scores_csv",
        parameters=REPORT_PARAMETERS,
        responses={(200, "text/csv"): OpenApiTypes.STR, **NO_ACCESS},
    )
    def get(self, request: Request, run_id: int) -> HttpResponse:
        """One chat per row, without chats that you cannot see; cells never start a formula."""
        scope = _scope(request, run_id)
        lines = ScoredRun.of(scope).lines(listed_members(scope, user=request.user))
        return table_file(lines, COLUMNS, name=f"session-scores-{run_id}.csv")


def _scope(request: Request, run_id: int) -> Scope:
    run = get_object_or_404(runs_open_to(request.user), pk=run_id)
    scope = found_or_404(requested_scope(run.chat_set, run, request.query_params, request.user))
    if not knows_rater(scope):
        raise Http404
    return scope
