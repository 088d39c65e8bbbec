"""API of rubrics, written by leads, and of the texts for raters, written by authors and leads."""

from dataclasses import replace
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
    PostPermission,
    RowOutput,
    field_error,
    problem,
    validated,
)
from common.jsonl import Fields, Ignored
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Rubric, RubricGuideline, Tier
from labeling.people.api.permissions import ManagesLabeling, WritesTexts
from labeling.rubric.core.rubric import CRITERION_KEY_LIMIT, criterion_of, rubric_of, suggested_key
from labeling.rubric.queries.editor import edited_rubric, rubric_rows, settings_of
from labeling.rubric.services.criteria import Question, SettingsConflict, criterion_add, criterion_change
from labeling.rubric.services.guidelines import CriterionWords, EditConflict, criterion_write, guideline_write
from labeling.rubric.services.rubric import rubric_create
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


# ---------- rubrics ----------


class DimensionBody(serializers.Serializer[Any]):
    """A dimension."""

    key = serializers.CharField(max_length=CRITERION_KEY_LIMIT)
    name = serializers.CharField(max_length=120)


class CriterionBody(serializers.Serializer[Any]):
    """A criterion as in a rubric file. A new one without `key` gets one from its question."""

    key = serializers.CharField(max_length=CRITERION_KEY_LIMIT, required=False)
    dimension = serializers.CharField()
    tier = serializers.ChoiceField(choices=Tier.choices)
    question = serializers.CharField(max_length=2_000, trim_whitespace=False)
    definition = serializers.CharField(max_length=10_000, trim_whitespace=False)
    passes_when = serializers.BooleanField(default=True)
    allow_na = serializers.BooleanField(default=False)
    critical = serializers.BooleanField(default=False)
    evidence_on_fail = serializers.BooleanField(default=False)


class RubricBody(serializers.Serializer[Any]):
    """A rubric as in a rubric file."""

    name = serializers.CharField(max_length=120)
    dimensions = DimensionBody(many=True)
    criteria = CriterionBody(many=True)


class RubricRowOutput(serializers.Serializer[Any]):
    """A rubric of the list, with the numbers of its active criteria."""

    id = serializers.IntegerField(source="rubric.pk")
    name = serializers.CharField(source="rubric.name")
    criteria = serializers.IntegerField()
    critical = serializers.IntegerField()
    dimensions = serializers.IntegerField()


class RubricsOutput(serializers.Serializer[Any]):
    """All rubrics."""

    rubrics = RubricRowOutput(many=True)


class CriterionChangeInput(CriterionBody):
    """A change of a criterion: fields that are left out stay. `base` is the number of the edited version."""

    base = serializers.IntegerField(min_value=1)
    reason = serializers.CharField(max_length=500)
    meaning = serializers.ChoiceField(choices=["wording", "new"], required=False)


class RubricApi(PostPermission):
    """Rubrics: authors read, leads write."""

    permission_classes = [WritesTexts]
    post_permission = ManagesLabeling

    def handle_exception(self, exc: Exception) -> Response:
        """Answer errors of the services with 400 or 409."""
        if isinstance(exc, FieldProblem):
            exc = field_error(exc)
        elif isinstance(exc, EditConflict | SettingsConflict):
            exc = problem("newer_version", str(exc))
        return super().handle_exception(exc)


class RubricsApi(RubricApi):
    """Every rubric."""

    @extend_schema(operation_id="rubrics", responses={200: RubricsOutput, **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """Rubrics by name."""
        return Response(RubricsOutput({"rubrics": rubric_rows()}).data)

    @extend_schema(
        operation_id="rubric_create",
        request=RubricBody,
        responses={201: RubricBody, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request) -> Response:
        """Create a rubric; its criteria get their first prompt. 400 where the name is taken."""
        spec = rubric_of(Fields(request.data))
        stored = rubric_create(spec=spec, reason="Created by the API", by=cast(User, request.user))
        return Response(_rubric_body(stored.rubric), status=status.HTTP_201_CREATED)


class RubricDetailApi(RubricApi):
    """One rubric."""

    @extend_schema(operation_id="rubric", responses={200: RubricBody, **NO_ACCESS})
    def get(self, request: Request, rubric_id: int) -> Response:
        """The rubric with its dimensions and active criteria, as in a rubric file."""
        return Response(_rubric_body(get_object_or_404(Rubric, pk=rubric_id)))

    @extend_schema(
        operation_id="criterion_add",
        request=CriterionBody,
        responses={201: CriterionBody, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request, rubric_id: int) -> Response:
        """Add a criterion, with its first prompt."""
        rubric = get_object_or_404(Rubric, pk=rubric_id)
        data = dict(validated(CriterionBody, request.data)) | dict(request.data)
        taken = Criterion.objects.values_list("key", flat=True)
        data.setdefault("key", suggested_key(data["question"], taken=set(taken)))
        dimensions = set(Dimension.objects.values_list("key", flat=True))
        spec = criterion_of(Fields(data), dimensions, Ignored())
        row = criterion_add(rubric=rubric, spec=spec, reason="Added by the API", by=cast(User, request.user))
        return Response(_criterion_body(row), status=status.HTTP_201_CREATED)


class CriterionChangeApi(RubricApi):
    """The question, definition and settings of a criterion."""

    @extend_schema(
        operation_id="criterion_change",
        request=CriterionChangeInput,
        responses={200: CriterionBody, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, key: str) -> Response:
        """Change a criterion. 409 where another version is the newest by now."""
        criterion = get_object_or_404(Criterion.objects.select_related("dimension"), key=key)
        data = dict(validated(CriterionChangeInput, request.data, partial=True))
        if missing := {name: ["This field is required."] for name in ("base", "reason") if name not in data}:
            raise serializers.ValidationError(missing)
        before, newest = settings_of(criterion), criterion.versions.latest("number")
        asked = {name: data.get(name, getattr(newest, name)) for name in Question.__dataclass_fields__}
        names = ("key", "dimension", "tier", "critical", "evidence_on_fail")
        changed = criterion_change(
            criterion=criterion,
            settings=replace(before, **{name: data[name] for name in names if name in data}),
            question=Question(**asked),
            base=data["base"],
            seen=before.digest,
            reason=data["reason"],
            meaning=data.get("meaning", ""),
            by=cast(User, request.user),
        )
        return Response(_criterion_body(changed.criterion))


def _rubric_body(rubric: Rubric) -> dict[str, Any]:
    edited = edited_rubric(rubric)
    return {
        "name": rubric.name,
        "dimensions": [{"key": one.dimension.key, "name": one.dimension.name} for one in edited.dimensions],
        "criteria": [_body(row.criterion, row.version) for one in edited.dimensions for row in one.criteria],
    }


def _criterion_body(criterion: Criterion) -> dict[str, Any]:
    return _body(criterion, criterion.versions.latest("number"))


def _body(criterion: Criterion, version: CriterionVersion) -> dict[str, Any]:
    return {
        "key": criterion.key,
        "dimension": criterion.dimension.key,
        "tier": criterion.tier,
        "question": version.question,
        "definition": version.definition,
        "passes_when": version.passes_when,
        "allow_na": version.allow_na,
        "critical": criterion.critical,
        "evidence_on_fail": criterion.evidence_on_fail,
    }
