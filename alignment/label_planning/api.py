"""API of label planning and sampling, for leads."""

from dataclasses import replace
from typing import Any, ClassVar, cast

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.comparison.api import PartQuery, ReportView
from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.forms import LARGEST_SEED, random_seed
from alignment.label_planning.queries.plan import CriterionPlan, TopicLabels, criterion_plans, topic_labels
from alignment.label_planning.services.sample import create_sample, sample_source
from alignment.label_planning.services.sample_preview import (
    MOST,
    SamplePreview,
    SampleRequest,
    preview_sample,
)
from alignment.statistics.label_needs import Need
from common.api import INVALID, NO_ACCESS, PROBLEMS, validated
from common.problems import InputProblem
from labeling.chats.core.allocation import AllocationRule
from labeling.chats.services.chat_sets import NAME_LIMIT
from labeling.models.people import User
from labeling.people.api.permissions import ManagesLabeling, SeesJudge
from labeling.people.queries.visibility import labels_too


class DrawInput(serializers.Serializer[Any]):
    """A sample of chats to label. Without `chats` and `judge_false`, as many as the status needs."""

    criteria = serializers.ListField(child=serializers.CharField(), min_length=1, help_text="Keys.")
    name = serializers.CharField(max_length=NAME_LIMIT, help_text="Name of the new chat set; raters see it.")
    chats = serializers.IntegerField(required=False, min_value=1, max_value=MOST)
    judge_false = serializers.IntegerField(required=False, min_value=0, max_value=MOST)
    topics = serializers.ListField(
        child=serializers.CharField(), required=False, default=list, help_text="Keys. Default: all topics."
    )
    rule = serializers.ChoiceField(
        choices=[AllocationRule.PROPORTIONAL, AllocationRule.SQRT, AllocationRule.EQUAL],
        default=AllocationRule.PROPORTIONAL,
    )
    minimum = serializers.IntegerField(default=0, min_value=0, max_value=MOST)
    seed = serializers.IntegerField(required=False, min_value=0, max_value=LARGEST_SEED)
    split = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=80,
        help_text="As in import_chats; '' keeps the splits.",
    )
    client_id = serializers.CharField(
        required=False, default="", max_length=80, help_text="Repeating it returns the same set."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Return only the preview.")


class DrawnOutput(serializers.Serializer[Any]):
    """A sampled chat set; `again` if the same `client_id` has sampled it before."""

    id = serializers.IntegerField()
    set = serializers.CharField()
    chats = serializers.IntegerField()
    again = serializers.BooleanField()


class PlanView(ReportView):
    """A route on the labels of the chats that the query selects."""

    permission_classes = [SeesJudge, ManagesLabeling]
    query_classes: ClassVar = {"GET": PartQuery, "POST": PartQuery}

    def plan_scope(self, run_id: int) -> Scope:
        """Return the selected chats, compared with the consensus. Raises Http404."""
        run = self.run(run_id)
        if run.chat_set is None:
            raise Http404
        return replace(self.scope(run.chat_set, run), against=CONSENSUS)


class LabelPlan(PlanView):
    """Missing labels of each decision."""

    @extend_schema(
        operation_id="label_plan",
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="Needs by criterion, labels by topic"),
            **PROBLEMS,
        },
    )
    def get(self, request: Request, run_id: int) -> Response:
        """Labels that each criterion's decisions need, and labels by topic over all criteria."""
        scope = self.plan_scope(run_id)
        topics = topic_labels(scope, criteria=scope.criteria, user=cast(User, request.user))
        return Response(
            {
                "run": run_id,
                **{name: scope.as_json()[name] for name in ("split", "topic", "since", "until")},
                "criteria": [_plan_body(plan) for plan in criterion_plans(scope)],
                "topics": [_topic_body(row) for row in topics],
            }
        )


class LabelDraws(PlanView):
    """Samples of chats to label."""

    @extend_schema(
        operation_id="label_draw",
        request=DrawInput,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="The preview, or the set sampled before"),
            201: DrawnOutput,
            400: INVALID,
            **NO_ACCESS,
        },
    )
    def post(self, request: Request, run_id: int) -> Response:
        """Sample a chat set, or with `dry_run` return the preview."""
        scope, user = self.plan_scope(run_id), cast(User, request.user)
        body = validated(DrawInput, request.data)
        sample = _sample(scope, user, body)
        try:
            if body["dry_run"]:
                preview = preview_sample(sample, by=user)
                return Response(_preview_body(preview, topics=not labels_too(user=user)))
            created = create_sample(sample, by=user)
        except InputProblem as problem:
            raise ValidationError({"detail": str(problem)}) from problem
        answer = {
            "id": created.chat_set.pk,
            "set": created.chat_set.name,
            "chats": created.chat_set.members.count(),
            "again": created.again,
        }
        return Response(answer, status=status.HTTP_200_OK if created.again else status.HTTP_201_CREATED)


def _sample(scope: Scope, user: User, body: dict[str, Any]) -> SampleRequest:
    by_key = {row.key: row for row in scope.criteria}
    unknown = [key for key in body["criteria"] if key not in by_key]
    if unknown:
        raise ValidationError({"criteria": f"{unknown[0]} is no criterion of this run."})
    chosen = set(body["criteria"])
    seed = body.get("seed")
    return SampleRequest(
        scope=scope,
        criteria=tuple(row for row in scope.criteria if row.key in chosen),
        name=body["name"],
        chats=body.get("chats"),
        suspect=body.get("judge_false"),
        topics=tuple(body["topics"]),
        rule=AllocationRule(body["rule"]),
        minimum=body["minimum"],
        seed=random_seed() if seed is None else seed,
        split=body["split"],
        source=sample_source(scope=scope, by=user, token=body["client_id"]),
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
        "more_labels": plan.summary,
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
    """Return the sample by verdict, with its strata by topic for users who label none of its chats."""
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
