"""REST of texts for raters: what a rater is told, and the versions that authors and leads write."""

from typing import Any, NoReturn, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, WritesTexts, problem
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Rubric, RubricGuideline
from labeling.rating.api.rater import RaterView
from labeling.rubric.queries.criteria import criteria_of
from labeling.rubric.queries.guidelines import Change, CriterionText, changes_since, guideline_for
from labeling.rubric.services.guidelines import CriterionWords, EditConflict, criterion_write, guideline_write

LONGEST_TEXT = 50_000

# ---------- what goes in and out ----------


class CriterionTextOutput(serializers.Serializer[CriterionText]):
    """What a rater reads about a criterion; guideline is Markdown."""

    key = serializers.CharField()
    version = serializers.IntegerField(source="number")
    question = serializers.CharField()
    definition = serializers.CharField()
    guideline = serializers.CharField()
    true_example = serializers.CharField()
    false_example = serializers.CharField()


class ChangeOutput(serializers.Serializer[Change]):
    """A text that is new to the rater; `criterion` is '' for the rubric's guideline, `old` 0 for none."""

    criterion = serializers.CharField()
    name = serializers.CharField()
    old = serializers.IntegerField()
    new = serializers.IntegerField()
    url = serializers.CharField()


class GuidanceOutput(serializers.Serializer[Any]):
    """All that the rater of a chat may read, what of it is new to them, and until when they hold the chat;
    number 0 = no guideline.
    """

    rubric = serializers.CharField()
    number = serializers.IntegerField()
    text = serializers.CharField()
    criteria = CriterionTextOutput(many=True)
    changes = ChangeOutput(many=True)
    lease_expires_at = serializers.DateTimeField(allow_null=True)


class VersionInput(serializers.Serializer[Any]):
    """Every new version: `base` is the number of the version that it started from, 0 for none."""

    base = serializers.IntegerField(min_value=0)
    reason = serializers.CharField(max_length=500)


class GuidelineInput(VersionInput):
    """A rubric's guideline, Markdown."""

    text = serializers.CharField(max_length=LONGEST_TEXT, trim_whitespace=False)


class CriterionTextInput(VersionInput):
    """All texts of a criterion."""

    question = serializers.CharField(max_length=2_000, trim_whitespace=False)
    definition = serializers.CharField(max_length=10_000, trim_whitespace=False)
    guideline = serializers.CharField(
        max_length=LONGEST_TEXT, trim_whitespace=False, allow_blank=True, default=""
    )
    true_example = serializers.CharField(
        max_length=2_000, trim_whitespace=False, allow_blank=True, default=""
    )
    false_example = serializers.CharField(
        max_length=2_000, trim_whitespace=False, allow_blank=True, default=""
    )


class GuidelineOutput(serializers.Serializer[RubricGuideline]):
    """A version of a rubric's guideline."""

    number = serializers.IntegerField()
    text = serializers.CharField()
    reason = serializers.CharField()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()


class CriterionVersionOutput(serializers.Serializer[CriterionVersion]):
    """A version of a criterion; those of the same `content_hash` ask the same question."""

    number = serializers.IntegerField()
    question = serializers.CharField()
    definition = serializers.CharField()
    guideline = serializers.CharField()
    true_example = serializers.CharField()
    false_example = serializers.CharField()
    passes_when = serializers.BooleanField()
    allow_na = serializers.BooleanField()
    content_hash = serializers.CharField()
    reason = serializers.CharField()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()


class VersionPages(CursorPagination):
    """Newest first, 50 a page."""

    page_size = 50
    ordering = "-number"


# ---------- routes ----------


class GuidanceApi(RaterView):
    """What a rater is told while they label a chat."""

    @extend_schema(
        operation_id="assignment_guideline",
        responses={200: GuidanceOutput, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, assignment_id: int) -> Response:
        """The texts in force, and what was written since the rater last worked by them."""
        assignment = self.own(assignment_id)
        criteria = criteria_of(assignment.job)
        told = guideline_for(assignment=assignment, criteria=criteria)
        body = {
            "rubric": told.rubric,
            "number": told.number,
            "text": told.text,
            "criteria": list(told.criteria.values()),
            "changes": changes_since(assignment=assignment, criteria=criteria),
            "lease_expires_at": assignment.lease_expires_at,
        }
        return Response(GuidanceOutput(body).data)


class VersionsApi(APIView):
    """Versions of a text."""

    permission_classes = [WritesTexts]

    def refuse(self, error: FieldProblem | EditConflict) -> NoReturn:
        """A service's refusal as 400 or 409."""
        if isinstance(error, FieldProblem):
            raise ValidationError({error.field: [error.message]}) from error
        raise problem("newer_version", str(error)) from error

    def page(self, request: Request, rows: Any, output: Any) -> Response:
        """One page of versions."""
        pages = VersionPages()
        found: Any = pages.paginate_queryset(rows.select_related("created_by"), request, view=self)
        return pages.get_paginated_response(output(found, many=True).data)


class RubricGuidelinesApi(VersionsApi):
    """A rubric's guideline."""

    @extend_schema(
        operation_id="rubric_guidelines",
        responses={200: GuidelineOutput(many=True), 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, rubric_id: int) -> Response:
        """Its versions, newest first; the newest is in force."""
        rubric = get_object_or_404(Rubric, pk=rubric_id)
        return self.page(request, rubric.guidelines.all(), GuidelineOutput)

    @extend_schema(
        operation_id="rubric_guideline_write",
        request=GuidelineInput,
        responses={200: GuidelineOutput, 201: GuidelineOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, rubric_id: int) -> Response:
        """Write a version; 200 with the newest one where the text is the same."""
        rubric = get_object_or_404(Rubric, pk=rubric_id)
        given = GuidelineInput(data=request.data)
        given.is_valid(raise_exception=True)
        known = rubric.guidelines.count()
        try:
            row = guideline_write(rubric=rubric, by=cast(User, request.user), **given.validated_data)
        except (FieldProblem, EditConflict) as error:
            self.refuse(error)
        return Response(GuidelineOutput(row).data, status=_status(row.number > known))


class CriterionVersionsApi(VersionsApi):
    """A criterion's texts."""

    @extend_schema(
        operation_id="criterion_versions",
        responses={200: CriterionVersionOutput(many=True), 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, key: str) -> Response:
        """Its versions, newest first; the newest is in force."""
        criterion = get_object_or_404(Criterion, key=key)
        return self.page(request, criterion.versions.all(), CriterionVersionOutput)

    @extend_schema(
        operation_id="criterion_write",
        request=CriterionTextInput,
        responses={200: CriterionVersionOutput, 201: CriterionVersionOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, key: str) -> Response:
        """Write a version; 200 with the newest one where no text differs."""
        criterion = get_object_or_404(Criterion, key=key)
        given = CriterionTextInput(data=request.data)
        given.is_valid(raise_exception=True)
        texts = dict(given.validated_data)
        reason, base = texts.pop("reason"), texts.pop("base")
        known = criterion.versions.count()
        try:
            row = criterion_write(
                criterion=criterion,
                words=CriterionWords(**texts),
                reason=reason,
                base=base,
                by=cast(User, request.user),
            )
        except (FieldProblem, EditConflict) as error:
            self.refuse(error)
        return Response(CriterionVersionOutput(row).data, status=_status(row.number > known))


def _status(made: bool) -> int:
    return status.HTTP_201_CREATED if made else status.HTTP_200_OK
