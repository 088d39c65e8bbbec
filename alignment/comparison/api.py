"""Query parameters that select what a comparison covers, and the routes that take them."""

from typing import ClassVar

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from alignment.comparison.queries.answers import ReportNotComputed, UnknownRater
from alignment.comparison.queries.requested_scope import requested_scope, valid_ground_truth
from alignment.comparison.queries.scope import Scope
from common.access import found_or_404
from common.api import ApiView, QueryInput, choice_parameter, problem, row_parameter
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import ChatSet, Split, Topic


class PartQuery(QueryInput):
    """The chats that a comparison covers."""

    split = choice_parameter("split", Split.values)
    topic = row_parameter("topic", Topic.objects.all(), "key", help_text="Key of a topic.")
    since = serializers.DateField(required=False, help_text="First day on which chats started.")
    until = serializers.DateField(required=False, help_text="Last day on which chats started.")


class ReportQuery(PartQuery):
    """The chats and the ground truth of a comparison."""

    against = serializers.CharField(
        required=False, trim_whitespace=False, help_text="consensus, each-rater or rater:NAME."
    )

    def validate_against(self, against: str) -> str:
        """Refuse what is no ground truth. Whether the rater has labels depends on the chats."""
        if not valid_ground_truth(against):
            message = f"against must be consensus, each-rater or rater:NAME, not {against!r}."
            raise serializers.ValidationError(message)
        return against


class ReportView(ApiView):
    """A route on the comparison that the query selects."""

    query_classes: ClassVar = {"GET": ReportQuery, "POST": ReportQuery}

    def run(self, run_id: int) -> Run:
        """Return a run that the user may open. Raises Http404."""
        run: Run = get_object_or_404(runs_open_to(self.request.user), pk=run_id)
        return run

    def scope(self, chat_set: ChatSet | None, run: Run | None) -> Scope:
        """Return the selected scope, limited to the figures that the user may see. Raises Http404."""
        query = self.request.query_params
        return found_or_404(requested_scope(chat_set, run, query, self.request.user))

    def handle_exception(self, exc: Exception) -> Response:
        """Answer 400 to a rater without labels here, 409 to a report that is not computed."""
        if isinstance(exc, UnknownRater):
            exc = ValidationError({"against": [f"{str(exc)[:1].upper()}{str(exc)[1:]}."]})
        if isinstance(exc, ReportNotComputed):
            exc = problem(
                "not_computed", "A worker computes a report of this size: POST to alignment_report/."
            )
        return super().handle_exception(exc)
