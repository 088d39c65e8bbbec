"""The judge's view of a chat, for the rater who has submitted it."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.reveal.queries import ShownVerdict
from alignment.reveal.services import JudgeView, judge_view_reveal
from common.api import FORBIDDEN, NOT_FOUND
from labeling.rating.api.rater import RaterView


class ShownVerdictOutput(serializers.Serializer[ShownVerdict]):
    """The judge's answer; `value` null with state "read" = not applicable."""

    criterion = serializers.CharField()
    value = serializers.BooleanField(allow_null=True)
    state = serializers.CharField()
    rationale = serializers.CharField()


class JudgeViewOutput(serializers.Serializer[JudgeView]):
    """The judge's answers; where no run has judged the chat `judge` is empty and nothing was revealed."""

    judge = serializers.CharField()
    revealed_at = serializers.DateTimeField(allow_null=True)
    verdicts: Any = ShownVerdictOutput(many=True)


class RevealApi(RaterView):
    """See what the judge said."""

    @extend_schema(
        operation_id="assignment_reveal",
        request=None,
        responses={200: JudgeViewOutput, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        """The verdicts on a submitted chat; what the rater changes from now on is kept but not counted."""
        view = judge_view_reveal(assignment=self.own(assignment_id), rater=self.rater)
        if view is None:
            raise Http404
        return Response(JudgeViewOutput(view).data)
