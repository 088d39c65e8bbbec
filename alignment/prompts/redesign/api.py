"""API of redesigns of a criterion: preview, redesign, and the criterion's lineage."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.prompts.redesign.queries import Preview, redesign_preview
from alignment.prompts.redesign.services import redesign_carry_out
from common.api import INVALID, NO_ACCESS, ApiView, field_error, validated
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion, Dimension, Tier
from labeling.people.api.permissions import ManagesLabeling, SeesJudge
from labeling.rubric.core.redesign import KINDS, MOST, REASON_LIMIT, Redesign, successor_of
from labeling.rubric.core.rubric import CRITERION_KEY_LIMIT
from labeling.rubric.queries.lineage import EVENT_KINDS, HistoryEvent, Lineage, Step, lineage_of
from labeling.rubric.queries.redesign import LabelCarryOver
from labeling.rubric.services.redesign import Redesigned, criterion_bring_back

BRING_BACK = "bring_back"
Keys = serializers.ListField

# ---------- requests ----------


class SuccessorInput(serializers.Serializer[Any]):
    """A new criterion, as in a rubric file; `carries` lists old criteria whose labels carry over."""

    key = serializers.CharField(max_length=CRITERION_KEY_LIMIT)
    question = serializers.CharField(max_length=2_000, trim_whitespace=False)
    definition = serializers.CharField(max_length=10_000, trim_whitespace=False)
    dimension = serializers.CharField()
    tier = serializers.ChoiceField(choices=Tier.choices)
    passes_when = serializers.BooleanField(default=True)
    allow_na = serializers.BooleanField(default=False)
    critical = serializers.BooleanField(default=False)
    carries = Keys(child=serializers.CharField(), default=list, max_length=MOST)


class RedesignInput(serializers.Serializer[Any]):
    """A redesign of the criterion in the address; `others` are criteria that merge with it."""

    kind = serializers.ChoiceField(choices=[*KINDS, BRING_BACK])
    reason = serializers.CharField(
        max_length=REASON_LIMIT,
        required=False,
        allow_blank=True,
        default="",
        help_text="Not needed for a dry run.",
    )
    others = Keys(child=serializers.CharField(), default=list, max_length=MOST)
    into = SuccessorInput(many=True, required=False, default=list)
    same_answers = serializers.BooleanField(
        default=False,
        help_text="Confirms that, where labels carry over, the old and the new answers mean the same.",
    )
    dry_run = serializers.BooleanField(default=False, help_text="Return only the preview.")


# ---------- answers ----------


class TallyOutput(serializers.Serializer[Any]):
    """Numbers of answers that carry over, and of those on chats that are excluded."""

    carried = serializers.IntegerField()
    conflicts = serializers.IntegerField()


class ChatTallyOutput(serializers.Serializer[Any]):
    """Numbers of chats that carry over, and of those excluded because the old consensuses differ.

    Of those that carry over, `one_only` have answers to one of several old criteria, and on `unresolved` an
    old consensus is unresolved.
    """

    carried = serializers.IntegerField()
    excluded = serializers.IntegerField()
    one_only = serializers.IntegerField()
    unresolved = serializers.IntegerField()


class CarryingOutput(serializers.Serializer[LabelCarryOver]):
    """Answers that carry over to a new criterion; `differing` labels: the rater's old answers differ."""

    key = serializers.CharField()
    olds = Keys(child=serializers.CharField())
    labels = TallyOutput()
    adjudications = TallyOutput()
    chats = ChatTallyOutput()
    differing = serializers.IntegerField()


class TouchedJobOutput(serializers.Serializer[Any]):
    """An open labelling job with an old criterion; `left` is the number of its other criteria."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    left = serializers.IntegerField()


class RedesignOutput(serializers.Serializer[Any]):
    """The redesign, or with `dry_run` its preview.

    Labels, adjudications and drafts of the old criteria are counted; they stay there. `runs` are in progress.
    Open `tests` prevent the redesign.
    """

    olds = Keys(child=serializers.CharField())
    new = Keys(child=serializers.CharField())
    dry_run = serializers.BooleanField()
    carrying = CarryingOutput(many=True)
    labels = serializers.IntegerField(allow_null=True)
    adjudications = serializers.IntegerField(allow_null=True)
    drafts = serializers.IntegerField(allow_null=True)
    jobs = TouchedJobOutput(many=True)
    runs = Keys(child=serializers.IntegerField())
    tests = Keys(child=serializers.IntegerField())


class AncestorOutput(serializers.Serializer[Any]):
    """A retired criterion, and whether its labels carried over."""

    key = serializers.CharField(source="criterion.key")
    labels_carried = serializers.BooleanField()


class StepOutput(serializers.Serializer[Step]):
    """A redesign."""

    kind = serializers.CharField()
    olds = AncestorOutput(many=True)
    new = Keys(child=serializers.CharField(), source="new_keys")
    reason = serializers.CharField()
    by = serializers.CharField(source="by.username", allow_null=True, default=None)
    at = serializers.DateTimeField()


class RetirementOutput(serializers.Serializer[Any]):
    """The retirement of a criterion."""

    reason = serializers.CharField()
    by = serializers.CharField(source="by.username", allow_null=True, default=None)
    at = serializers.DateTimeField()


class HistoryOutput(serializers.Serializer[HistoryEvent]):
    """An event in a criterion's history; `others`: those that it was made from or merged with."""

    kind = serializers.ChoiceField(choices=EVENT_KINDS)
    others = Keys(child=serializers.CharField(), source="other_keys")
    new = Keys(child=serializers.CharField(), source="new_keys")
    reason = serializers.CharField()
    by = serializers.CharField(source="by.username", allow_null=True, default=None)
    at = serializers.DateTimeField()


class LineageOutput(serializers.Serializer[Lineage]):
    """The predecessors, successors and history of a criterion; `made_of` is null without predecessors."""

    key = serializers.CharField(source="criterion.key")
    state = serializers.CharField(source="criterion.state")
    made_of = StepOutput(allow_null=True)
    became = StepOutput(many=True)
    retired = RetirementOutput(allow_null=True)
    history = HistoryOutput(many=True)


# ---------- routes ----------


class RedesignApi(ApiView):
    """Redesign a criterion."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="criterion_redesign",
        request=RedesignInput,
        responses={200: RedesignOutput, 201: RedesignOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request, key: str) -> Response:
        """Retire, replace, split, merge or bring back the criterion. 200 with the preview of a dry run."""
        criterion = get_object_or_404(Criterion, key=key)
        body, by = validated(RedesignInput, request.data), cast(User, request.user)
        try:
            if body["kind"] == BRING_BACK:
                return _bring_back(criterion, body, by)
            redesign = _redesign(criterion, body)
            if body["dry_run"]:
                preview = redesign_preview(redesign=redesign)
                return Response(RedesignOutput(_preview_body(redesign, preview)).data)
            result = redesign_carry_out(redesign=redesign, reason=body["reason"], by=by)
        except FieldProblem as problem:
            raise field_error(problem) from problem
        return Response(RedesignOutput(_result_body(result)).data, status=status.HTTP_201_CREATED)


class LineageApi(ApiView):
    """The lineage of a criterion."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="criterion_lineage", responses={200: LineageOutput, **NO_ACCESS})
    def get(self, request: Request, key: str) -> Response:
        """The criterion's predecessors and successors; its history, newest first, with who and why."""
        return Response(LineageOutput(lineage_of(get_object_or_404(Criterion, key=key))).data)


def _redesign(criterion: Criterion, body: dict[str, Any]) -> Redesign:
    dimensions = set(Dimension.objects.values_list("key", flat=True))
    into = tuple(successor_of(data, n, dimensions) for n, data in enumerate(body["into"]))
    olds = tuple(dict.fromkeys([criterion.key, *body["others"]]))
    return Redesign(body["kind"], olds, into, same_answers=body["same_answers"])


def _bring_back(criterion: Criterion, body: dict[str, Any], by: User) -> Response:
    """Bring the criterion back, unless in a dry run, which counts nothing."""
    if not body["dry_run"]:
        criterion_bring_back(criterion=criterion, reason=body["reason"], by=by)
    answer = {**_EMPTY, "olds": [], "new": [criterion.key], "dry_run": body["dry_run"]}
    code = status.HTTP_200_OK if body["dry_run"] else status.HTTP_201_CREATED
    return Response(RedesignOutput(answer).data, status=code)


_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("labels", "adjudications", "drafts")),
    **dict.fromkeys(("carrying", "jobs", "runs", "tests"), ()),
}


def _preview_body(redesign: Redesign, preview: Preview) -> dict[str, Any]:
    people = preview.consequences
    return {
        "olds": [row.key for row in preview.olds],
        "new": [successor.spec.key for successor in redesign.into],
        "dry_run": True,
        "carrying": people.carrying,
        "labels": people.labels,
        "adjudications": people.adjudications,
        "drafts": people.drafts,
        "jobs": people.jobs,
        "runs": preview.runs,
        "tests": [test.pk for test in preview.tests],
    }


def _result_body(result: Redesigned) -> dict[str, Any]:
    return {
        **_EMPTY,
        "olds": [row.key for row in result.olds],
        "new": [row.key for row in result.new],
        "dry_run": False,
        "carrying": result.carried,
    }
