"""REST of redesigns: what one would do, carrying it out, and where a criterion comes from."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.prompts.redesign.queries import Preview, redesign_preview
from alignment.prompts.redesign.services import redesign_carry_out
from common.api import FORBIDDEN, NOT_FOUND, WRONG, ManagesLabeling
from common.problems import FieldProblem
from evaluation.runs.api import SeesJudge
from labeling.models.people import User
from labeling.models.rubric import Criterion, Dimension, Tier
from labeling.rubric.core.redesign import KINDS, MOST, REASON_LIMIT, Redesign, successor_of
from labeling.rubric.core.rubric import CRITERION_KEY_LIMIT
from labeling.rubric.queries.lineage import Lineage, Step, lineage_of
from labeling.rubric.queries.redesign import Carrying
from labeling.rubric.services.redesign import Redesigned, criterion_bring_back

BRING_BACK = "bring_back"
Keys = serializers.ListField

# ---------- what goes in ----------


class SuccessorInput(serializers.Serializer[Any]):
    """A criterion to make, as in a rubric file; `carries`: keys of old ones whose labels carry over to it."""

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
    """A redesign of the criterion of the address; `others` are those that merge with it."""

    kind = serializers.ChoiceField(choices=[*KINDS, BRING_BACK])
    reason = serializers.CharField(
        max_length=REASON_LIMIT, required=False, allow_blank=True, default="", help_text="Not for a dry run."
    )
    others = Keys(child=serializers.CharField(), default=list, max_length=MOST)
    into = SuccessorInput(many=True, required=False, default=list)
    same_answers = serializers.BooleanField(
        default=False,
        help_text="True and False mean the same in the old and the new question wherever labels carry over.",
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only say what it would do.")


# ---------- what comes out ----------


class TallyOutput(serializers.Serializer[Any]):
    """Answers that carry over, and those that differ between the old criteria and stay behind."""

    carried = serializers.IntegerField()
    conflicts = serializers.IntegerField()


class CarryingOutput(serializers.Serializer[Carrying]):
    """What carries over to one new criterion."""

    key = serializers.CharField()
    olds = Keys(child=serializers.CharField())
    labels = TallyOutput()
    adjudications = TallyOutput()


class TouchedJobOutput(serializers.Serializer[Any]):
    """An open labelling job that asks an old criterion; `left` others it goes on asking."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    left = serializers.IntegerField()


class RedesignOutput(serializers.Serializer[Any]):
    """What was done, or with `dry_run` would be. The counts of labels, adjudications and drafts are of the
    old criteria, where they stay in any case; `runs` are under way; with `tests` open it is refused.
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
    """A criterion that ended, and whether its labels carried over."""

    key = serializers.CharField(source="criterion.key")
    labels_carried = serializers.BooleanField()


class StepOutput(serializers.Serializer[Step]):
    """One redesign."""

    kind = serializers.CharField()
    olds = AncestorOutput(many=True)
    new = Keys(child=serializers.CharField(), source="new_keys")
    reason = serializers.CharField()
    by = serializers.CharField(source="by.username", allow_null=True, default=None)
    at = serializers.DateTimeField()


class RetirementOutput(serializers.Serializer[Any]):
    """When a criterion ended, by whom and why."""

    reason = serializers.CharField()
    by = serializers.CharField(source="by.username", allow_null=True, default=None)
    at = serializers.DateTimeField()


class LineageOutput(serializers.Serializer[Lineage]):
    """Where a criterion comes from and what became of it; `made_of` null: it took nobody's place."""

    key = serializers.CharField(source="criterion.key")
    state = serializers.CharField(source="criterion.state")
    made_of = StepOutput(allow_null=True)
    became = StepOutput(many=True)
    retired = RetirementOutput(allow_null=True)


# ---------- routes ----------


class RedesignApi(APIView):
    """Redesign a criterion."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="criterion_redesign",
        request=RedesignInput,
        responses={200: RedesignOutput, 201: RedesignOutput, 400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def post(self, request: Request, key: str) -> Response:
        """Retire it, replace, split or merge it, or bring it back; 200 with what a dry run would do."""
        criterion = get_object_or_404(Criterion, key=key)
        read = RedesignInput(data=request.data)
        read.is_valid(raise_exception=True)
        given, by = read.validated_data, cast(User, request.user)
        try:
            if given["kind"] == BRING_BACK:
                return _brought_back(criterion, given, by)
            wanted = _redesign(criterion, given)
            if given["dry_run"]:
                return Response(RedesignOutput(_previewed(wanted, redesign_preview(redesign=wanted))).data)
            done = redesign_carry_out(redesign=wanted, reason=given["reason"], by=by)
        except FieldProblem as problem:
            raise ValidationError({problem.field: [problem.message]}) from problem
        return Response(RedesignOutput(_done(done)).data, status=status.HTTP_201_CREATED)


class LineageApi(APIView):
    """A criterion's history."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="criterion_lineage", responses={200: LineageOutput, 403: FORBIDDEN, 404: NOT_FOUND}
    )
    def get(self, request: Request, key: str) -> Response:
        """What it is made of, what took its place, and why."""
        return Response(LineageOutput(lineage_of(get_object_or_404(Criterion, key=key))).data)


def _redesign(criterion: Criterion, given: dict[str, Any]) -> Redesign:
    dimensions = set(Dimension.objects.values_list("key", flat=True))
    into = tuple(successor_of(data, n, dimensions) for n, data in enumerate(given["into"]))
    olds = tuple(dict.fromkeys([criterion.key, *given["others"]]))
    return Redesign(given["kind"], olds, into, same_answers=given["same_answers"])


def _brought_back(criterion: Criterion, given: dict[str, Any], by: User) -> Response:
    """NB: a dry run of it has nothing to count."""
    if not given["dry_run"]:
        criterion_bring_back(criterion=criterion, reason=given["reason"], by=by)
    done = {**_NOTHING, "olds": [], "new": [criterion.key], "dry_run": given["dry_run"]}
    code = status.HTTP_200_OK if given["dry_run"] else status.HTTP_201_CREATED
    return Response(RedesignOutput(done).data, status=code)


_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("labels", "adjudications", "drafts")),
    **dict.fromkeys(("carrying", "jobs", "runs", "tests"), ()),
}


def _previewed(redesign: Redesign, found: Preview) -> dict[str, Any]:
    people = found.consequences
    return {
        "olds": [row.key for row in found.olds],
        "new": [successor.spec.key for successor in redesign.into],
        "dry_run": True,
        "carrying": people.carrying,
        "labels": people.labels,
        "adjudications": people.adjudications,
        "drafts": people.drafts,
        "jobs": people.jobs,
        "runs": found.runs,
        "tests": [test.pk for test in found.tests],
    }


def _done(done: Redesigned) -> dict[str, Any]:
    return {
        **_NOTHING,
        "olds": [row.key for row in done.olds],
        "new": [row.key for row in done.new],
        "dry_run": False,
        "carrying": done.carried,
    }
