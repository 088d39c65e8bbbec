"""API of the judge's verdicts on a chat that the rater has submitted."""

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.reveal.queries import ShownVerdict
from alignment.reveal.services import JudgeView, judge_view_reveal
from common.access import found_or_404
from common.api import NO_ACCESS, ApiView
from labeling.models.people import User
from labeling.people.api.permissions import LabelsChats
from labeling.people.services.roles import rater_for
from labeling.rating.queries.labels import own_assignment


class ShownVerdictOutput(serializers.Serializer[ShownVerdict]):
    """A verdict. `value` null is not applicable when `state` is "read", else no verdict."""

    criterion = serializers.CharField()
    value = serializers.BooleanField(allow_null=True)
    state = serializers.CharField()
    rationale = serializers.CharField()


class JudgeViewOutput(serializers.Serializer[JudgeView]):
    """The judge's verdicts; empty, with the chat not revealed, until a run has judged it."""

    judge = serializers.CharField()
    revealed_at = serializers.DateTimeField(allow_null=True)
    verdicts: Any = ShownVerdictOutput(many=True)


class RevealApi(ApiView):
    """The judge's verdicts, shown to the rater."""

    permission_classes = [LabelsChats]

    @extend_schema(
        operation_id="assignment_reveal",
        request=None,
        responses={200: JudgeViewOutput, **NO_ACCESS},
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        """Show the verdicts on a submitted chat. Answers changed afterwards are stored but do not count."""
        rater = rater_for(user=cast(User, request.user))
        assignment = found_or_404(own_assignment(assignment_id=assignment_id, rater_id=rater.pk))
        view = found_or_404(judge_view_reveal(assignment=assignment, rater=rater))
        return Response(JudgeViewOutput(view).data)
