"""API of session scores: the chats of a run, as pages and as a table."""

from collections.abc import Sequence
from typing import Any, cast

from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils.functional import cached_property
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request

from alignment.comparison.api import ReportView
from alignment.comparison.queries.answers import UnknownRater, knows_rater
from alignment.comparison.queries.scope import Scope
from alignment.session_scores.queries import COLUMNS, ScoredRun, listed_members
from common.api import NO_ACCESS, DownloadView, PagedList
from common.downloads import table_file
from evaluation.models.runs import RunChat
from labeling.models.people import User
from labeling.people.api.permissions import SeesJudge
from labeling.people.services.audit import audit


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


class ScoresView(ReportView):
    """A route on the session scores of the chats that the query selects."""

    permission_classes = [SeesJudge]

    @cached_property
    def scored_scope(self) -> Scope:
        """The run's selected chats. Raises Http404 and UnknownRater."""
        run = self.run(self.kwargs["run_id"])
        scope = self.scope(run.chat_set, run)
        if not knows_rater(scope):
            raise UnknownRater(f"rater {scope.rater!r} has no labels on these chats")
        return scope


@extend_schema_view(
    get=extend_schema(
        operation_id="run_session_scores",
        responses={200: SessionScoreOutput(many=True), **NO_ACCESS},
    )
)
class RunSessionScores(ScoresView, PagedList[RunChat]):
    """The session scores of a run's chats, in the set's order, without chats that you cannot see."""

    serializer_class = SessionScoreOutput
    page_order, page_size, largest_page = "id", 100, 1000

    def get_queryset(self) -> QuerySet[RunChat]:
        """Return the rows of the chats that this user may see."""
        members = listed_members(self.scored_scope, user=self.request.user).select_related("chat")
        return members.only("chat__external_id", "split")

    def results(self, page: Sequence[RunChat]) -> Any:
        """Return the scores of a page."""
        scored = ScoredRun.of(self.scored_scope)
        return [scored.line(one) for one in scored.chats(page)]


class RunSessionScoresTable(ScoresView, DownloadView):
    """The session scores of a run's chats for spreadsheets."""

    @extend_schema(
        operation_id="run_session_scores_csv",
        responses={(200, "text/csv"): OpenApiTypes.STR, **NO_ACCESS},
    )
    def get(self, request: Request, run_id: int) -> HttpResponse:
        """One chat per row, without chats that you cannot see; cells never start a formula."""
        scope = self.scored_scope
        lines = ScoredRun.of(scope).lines(listed_members(scope, user=request.user))
        audit(actor=cast(User, request.user), verb="scores exported", obj=self.run(run_id), format="csv")
        return table_file(lines, COLUMNS, name=f"session-scores-{run_id}.csv")
