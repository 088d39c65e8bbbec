"""API of the texts for raters: versions of guidelines and of criteria, written by authors and leads."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    ApiView,
    PagedList,
    RowOutput,
    field_error,
    problem,
    validated,
)
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Rubric, RubricGuideline
from labeling.people.api.permissions import ManagesLabeling, WritesTexts
from labeling.rubric.services.guidelines import CriterionWords, EditConflict, criterion_write, guideline_write
from labeling.rubric.services.wording import (
    NotPossible,
    criterion_undo,
    criterion_wording_decide,
    guideline_undo,
    guideline_wording_decide,
)

LONGEST_TEXT = 50_000

# ---------- bodies ----------


class VersionInput(serializers.Serializer[Any]):
    """A new version; `base` is the number of the version it started from, 0 for none."""

    base = serializers.IntegerField(min_value=0)
    reason = serializers.CharField(max_length=500)
    meaning = serializers.ChoiceField(
        choices=["wording", "new"],
        required=False,
        help_text="`wording` keeps the labels, once a lead confirms it; `new` retires them with the first "
        "label to the new text. Without it, another question or definition is new.",
    )


class GuidelineInput(VersionInput):
    """A rubric's guideline in Markdown."""

    text = serializers.CharField(max_length=LONGEST_TEXT, trim_whitespace=False)


class CriterionTextInput(VersionInput):
    """A criterion's question, definition, guideline and examples."""

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


class GuidelineOutput(RowOutput[RubricGuideline]):
    """A version of a rubric's guideline."""

    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)

    class Meta:
        model = RubricGuideline
        fields = ("number", "text", "wording", "reason", "created_by", "created_at")


class CriterionVersionOutput(RowOutput[CriterionVersion]):
    """A version of a criterion.

    `content_hash` is of what raters and judge are asked. Labels to versions with the same `meaning` count
    together.
    """

    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)

    class Meta:
        model = CriterionVersion
        fields = (
            "number",
            "question",
            "definition",
            "guideline",
            "true_example",
            "false_example",
            "passes_when",
            "allow_na",
            "content_hash",
            "meaning",
            "wording",
            "reason",
            "created_by",
            "created_at",
        )


class MeaningInput(serializers.Serializer[Any]):
    """A lead's decision on a change that its author calls one of wording only."""

    meaning = serializers.ChoiceField(choices=["wording", "new"])


# ---------- routes ----------


class VersionsView(PagedList[Any]):
    """Versions of a text, newest first."""

    permission_classes = [WritesTexts]
    page_size = 50
    page_order = "-number"

    def handle_exception(self, exc: Exception) -> Response:
        """Answer errors of the services with 400 or 409."""
        if isinstance(exc, FieldProblem):
            exc = field_error(exc)
        elif isinstance(exc, EditConflict):
            exc = problem("newer_version", str(exc))
        return super().handle_exception(exc)


@extend_schema_view(
    get=extend_schema(
        operation_id="rubric_guidelines", responses={200: GuidelineOutput(many=True), **NO_ACCESS}
    )
)
class RubricGuidelinesApi(VersionsView):
    """Versions of a rubric's guideline, newest first; the newest is in force."""

    serializer_class = GuidelineOutput

    def get_queryset(self) -> Any:
        """Return the versions. Raises Http404."""
        rubric = get_object_or_404(Rubric, pk=self.kwargs["rubric_id"])
        return rubric.guidelines.select_related("created_by")

    @extend_schema(
        operation_id="rubric_guideline_write",
        request=GuidelineInput,
        responses={200: GuidelineOutput, 201: GuidelineOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, rubric_id: int) -> Response:
        """Write a version. 200 with the newest version if the text is the same."""
        rubric = get_object_or_404(Rubric, pk=rubric_id)
        body = validated(GuidelineInput, request.data)
        known = rubric.guidelines.count()
        row = guideline_write(rubric=rubric, by=cast(User, request.user), **body)
        return Response(GuidelineOutput(row).data, status=_status(row.number > known))


@extend_schema_view(
    get=extend_schema(
        operation_id="criterion_versions", responses={200: CriterionVersionOutput(many=True), **NO_ACCESS}
    )
)
class CriterionVersionsApi(VersionsView):
    """Versions of a criterion's texts, newest first; the newest is in force."""

    serializer_class = CriterionVersionOutput

    def get_queryset(self) -> Any:
        """Return the versions. Raises Http404."""
        criterion = get_object_or_404(Criterion, key=self.kwargs["key"])
        return criterion.versions.select_related("created_by")

    @extend_schema(
        operation_id="criterion_write",
        request=CriterionTextInput,
        responses={200: CriterionVersionOutput, 201: CriterionVersionOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, key: str) -> Response:
        """Write a version. 200 with the newest version if the texts are the same."""
        criterion = get_object_or_404(Criterion, key=key)
        body = validated(CriterionTextInput, request.data)
        reason, base, meaning = body.pop("reason"), body.pop("base"), body.pop("meaning", "")
        known = criterion.versions.count()
        row = criterion_write(
            criterion=criterion,
            words=CriterionWords(**body),
            reason=reason,
            base=base,
            by=cast(User, request.user),
            meaning=meaning,
        )
        return Response(CriterionVersionOutput(row).data, status=_status(row.number > known))


class VersionActionApi(ApiView):
    """An action on one version of a text."""

    permission_classes = [WritesTexts]

    def handle_exception(self, exc: Exception) -> Response:
        """Answer 409 where the version was labelled, decided or followed by another one."""
        if isinstance(exc, NotPossible):
            exc = problem("not_possible", str(exc))
        return super().handle_exception(exc)


class GuidelineUndoApi(VersionActionApi):
    """Undo of a guideline."""

    @extend_schema(
        operation_id="rubric_guideline_undo", request=None, responses={201: GuidelineOutput, **PROBLEMS}
    )
    def post(self, request: Request, rubric_id: int, number: int) -> Response:
        """Write the text before this version again, as the next one. 409 once a rater labelled by it."""
        version = get_object_or_404(RubricGuideline, rubric=rubric_id, number=number)
        row = guideline_undo(version=version, by=cast(User, request.user))
        return Response(GuidelineOutput(row).data, status=status.HTTP_201_CREATED)


class GuidelineDecideApi(VersionActionApi):
    """A lead's decision on a guideline."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="rubric_guideline_decide",
        request=MeaningInput,
        responses={200: GuidelineOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, rubric_id: int, number: int) -> Response:
        """Say whether a version changed the wording only. 409 unless its author asks for it."""
        version = get_object_or_404(RubricGuideline, rubric=rubric_id, number=number)
        only_wording = validated(MeaningInput, request.data)["meaning"] == "wording"
        by = cast(User, request.user)
        row = guideline_wording_decide(version=version, only_wording=only_wording, by=by)
        return Response(GuidelineOutput(row).data)


class CriterionVersionUndoApi(VersionActionApi):
    """Undo of a criterion's text."""

    @extend_schema(
        operation_id="criterion_version_undo",
        request=None,
        responses={201: CriterionVersionOutput, **PROBLEMS},
    )
    def post(self, request: Request, key: str, number: int) -> Response:
        """Write the texts before this version again, as the next one. 409 once a rater labelled by it."""
        version = get_object_or_404(CriterionVersion, criterion__key=key, number=number)
        row = criterion_undo(version=version, by=cast(User, request.user))
        return Response(CriterionVersionOutput(row).data, status=status.HTTP_201_CREATED)


class CriterionVersionDecideApi(VersionActionApi):
    """A lead's decision on a criterion's text."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="criterion_version_decide",
        request=MeaningInput,
        responses={200: CriterionVersionOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, key: str, number: int) -> Response:
        """Say whether a version changed the wording only. 409 unless its author asks for it."""
        version = get_object_or_404(CriterionVersion, criterion__key=key, number=number)
        only_wording = validated(MeaningInput, request.data)["meaning"] == "wording"
        by = cast(User, request.user)
        row = criterion_wording_decide(version=version, only_wording=only_wording, by=by)
        return Response(CriterionVersionOutput(row).data)


def _status(created: bool) -> int:
    return status.HTTP_201_CREATED if created else status.HTTP_200_OK
