"""Planning and drawing labels over HTTP, for leads."""

from dataclasses import replace
from typing import Any, cast

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.scope import Scope, requested_scope
from alignment.label_planning.forms import LARGEST_SEED, some_seed
from alignment.label_planning.queries.plan import CriterionPlan, TopicLabels, criterion_plans, topic_labels
from alignment.label_planning.services.draw_preview import MOST, DrawWish, SamplePreview, label_draw_preview
from alignment.label_planning.services.draws import label_draw, sample_source
from alignment.reports.api.reports import REPORT_PARAMETERS
from alignment.statistics.label_needs import Need
from common.api import NOT_FOUND, PROBLEMS, WRONG, ManagesLabeling
from common.problems import InputProblem
from evaluation.runs.api import SeesJudge
from evaluation.runs.queries.runs import runs_open_to
from labeling.chats.core.allocation import AllocationRule
from labeling.chats.services.chat_sets import NAME_LIMIT
from labeling.models.people import User
from labeling.people.queries.visibility import labels_too

PARTS = [one for one in REPORT_PARAMETERS if one.name != "against"]


class DrawInput(serializers.Serializer[Any]):
    """What to draw; without `chats` and `judge_false` as many as a badge misses."""

    criteria = serializers.ListField(child=serializers.CharField(), min_length=1, help_text="Keys.")
    name = serializers.CharField(max_length=NAME_LIMIT, help_text="Of the new set; raters read it.")
    chats = serializers.IntegerField(required=False, min_value=1, max_value=MOST)
    judge_false = serializers.IntegerField(required=False, min_value=0, max_value=MOST)
    topics = serializers.ListField(
        child=serializers.CharField(), required=False, default=list, help_text="Keys; none: all."
    )
    rule = serializers.ChoiceField(
        choices=[AllocationRule.PROPORTIONAL, AllocationRule.SQRT, AllocationRule.EQUAL],
        default=AllocationRule.PROPORTIONAL,
    )
    minimum = serializers.IntegerField(default=0, min_value=0, max_value=MOST)
    seed = serializers.IntegerField(required=False, min_value=0, max_value=LARGEST_SEED)
    split = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=80, help_text="As of import_chats; '' keeps."
    )
    client_id = serializers.CharField(
        required=False, default="", max_length=80, help_text="Equal ones draw one set."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only the preview.")


class LabelPlan(APIView):
    """What each decision misses."""

    permission_classes = [SeesJudge, ManagesLabeling]

    @extend_schema(
        operation_id="label_plan",
        parameters=PARTS,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="Needs by criterion, labels by topic"),
            403: PROBLEMS[403],
            404: NOT_FOUND,
        },
    )
    def get(self, request: Request, run_id: int) -> Response:
        """Needs of every criterion, and the labels by topic, all criteria together."""
        scope = _scope(request, run_id)
        topics = topic_labels(scope, criteria=scope.criteria, user=cast(User, request.user))
        return Response(
            {
                "run": run_id,
                **{name: scope.as_json()[name] for name in ("split", "topic", "since", "until")},
                "criteria": [_plan_body(plan) for plan in criterion_plans(scope)],
                "topics": [_topic_body(row) for row in topics],
            }
        )


class LabelDraws(APIView):
    """A set of chats to label."""

    permission_classes = [SeesJudge, ManagesLabeling]

    @extend_schema(
        operation_id="label_draw",
        parameters=PARTS,
        request=DrawInput,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="The preview; or the set drawn before"),
            201: OpenApiResponse(OpenApiTypes.OBJECT, description="The set"),
            400: WRONG,
            403: PROBLEMS[403],
            404: NOT_FOUND,
        },
    )
    def post(self, request: Request, run_id: int) -> Response:
        """Draw, or with `dry_run` tell what would be drawn."""
        scope, user = _scope(request, run_id), cast(User, request.user)
        given = DrawInput(data=request.data)
        given.is_valid(raise_exception=True)
        wish = _wish(scope, user, given.validated_data)
        try:
            if given.validated_data["dry_run"]:
                preview = label_draw_preview(wish, by=user)
                return Response(_preview_body(preview, topics=not labels_too(user=user)))
            made = label_draw(wish, by=user)
        except InputProblem as problem:
            raise ValidationError({"detail": str(problem)}) from problem
        body = {
            "set": made.chat_set.pk,
            "name": made.chat_set.name,
            "chats": made.chat_set.members.count(),
            "again": made.again,
        }
        return Response(body, status=status.HTTP_200_OK if made.again else status.HTTP_201_CREATED)


def _scope(request: Request, run_id: int) -> Scope:
    run = get_object_or_404(runs_open_to(request.user), pk=run_id)
    scope = requested_scope(run.chat_set, run, request.query_params, request.user)
    if scope is None or run.chat_set_id is None:
        raise Http404
    return replace(scope, against=CONSENSUS)


def _wish(scope: Scope, user: User, given: dict[str, Any]) -> DrawWish:
    by_key = {row.key: row for row in scope.criteria}
    unknown = [key for key in given["criteria"] if key not in by_key]
    if unknown:
        raise ValidationError({"criteria": f"{unknown[0]} is no criterion of this run."})
    chosen = set(given["criteria"])
    seed = given.get("seed")
    return DrawWish(
        scope=scope,
        criteria=tuple(row for row in scope.criteria if row.key in chosen),
        name=given["name"],
        chats=given.get("chats"),
        suspect=given.get("judge_false"),
        topics=tuple(given["topics"]),
        rule=AllocationRule(given["rule"]),
        minimum=given["minimum"],
        seed=some_seed() if seed is None else seed,
        split=given["split"],
        source=sample_source(scope=scope, by=user, token=given["client_id"]),
    )


def _plan_body(plan: CriterionPlan) -> dict[str, Any]:
    return {
        "key": plan.criterion.key,
        "tier": plan.criterion.tier,
        "n": plan.counts.n,
        "human_true": plan.counts.true,
        "human_false": plan.counts.false,
        "prevalence": plan.counts.prevalence,
        "share_of_false": {
            "judge_false": plan.shares.judge_false.share,
            "judge_true": plan.shares.judge_true.share,
        },
        "decisions": [_need_body(need) for need in plan.needs],
    }


def _need_body(need: Need) -> dict[str, Any]:
    return {
        "decision": need.decision.value,
        "applies": need.applies,
        "met": need.met,
        "next_step": need.sentence,
        "missing_chats": need.missing_chats,
        "missing_false": need.missing_false,
        "parts": [
            {"count": part.asked.value, "have": part.have, "want": part.want, "missing": part.missing}
            for part in need.parts
        ],
    }


def _topic_body(row: TopicLabels) -> dict[str, Any]:
    return {
        "topic": row.key,
        "chats": row.chats,
        "share": row.share,
        "answers": row.answers,
        "answers_share": row.answers_share,
        "false": row.false,
        "thin": row.thin,
    }


def _preview_body(preview: SamplePreview, *, topics: bool) -> dict[str, Any]:
    """By verdict; by topic too for who labels none of the chats."""
    strata = [
        {
            "judge_false": share.stratum.suspect,
            "topic": share.stratum.topic,
            "size": share.stratum.size,
            "n": share.n,
            "probability": share.probability,
        }
        for share in preview.shares
    ]
    return {
        "chats": preview.chats,
        "judge_false": preview.suspect,
        "available": {"judge_false": preview.available.suspect, "others": preview.available.other},
        "left_out": preview.without_chance,
        "random": preview.effective_chats,
        "criteria": [
            {
                "key": row.criterion.key,
                "missing_false": row.missing_false,
                "missing_true": row.missing_true,
                "false_about": row.expected.about,
                "false_low": row.expected.low,
                "false_high": row.expected.high,
            }
            for row in preview.forecasts
        ],
        "strata": strata if topics else None,
    }
