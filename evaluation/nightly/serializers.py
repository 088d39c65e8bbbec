"""Bodies of the API of sample plans."""

from datetime import time
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import Group
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.api import StrictInput
from common.problems import FieldProblem
from evaluation.models.judges import JudgeProfile
from evaluation.models.nightly import NightlyJudge
from evaluation.models.runs import Run
from evaluation.nightly.queries import NightRow, PlanPreview, PlanRow
from evaluation.nightly.services import MOST_ANCHORS, JudgeChoice
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric
from labeling.models.sampling import SamplePlan
from labeling.sampling.queries import SampleSize, labelling_accounts
from labeling.sampling.services import MOST_CHATS, MOST_OVERLAP, NAME_LIMIT, PlanSettings

MOST_RATERS = 1000


@extend_schema_field({"type": "string", "pattern": r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$"})
class TimeOfDay(serializers.TimeField):
    """A time of day; the schema's own format `time` would need an offset."""


class PlanInput(StrictInput):
    """A plan with its judge. In a change, missing fields stay as they are."""

    name = serializers.CharField(max_length=NAME_LIMIT)
    rubric = serializers.CharField(max_length=120)
    profile = serializers.CharField(max_length=120, help_text="Name of the judge profile.")
    chats = serializers.IntegerField(min_value=1, max_value=MOST_CHATS)
    rule = serializers.ChoiceField(SamplePlan.Rule.values, default=SamplePlan.Rule.PROPORTIONAL)
    minimum = serializers.IntegerField(
        min_value=0, max_value=MOST_CHATS, default=0, help_text="Chats of each topic, at least."
    )
    maximum = serializers.IntegerField(
        min_value=1, max_value=MOST_CHATS, default=None, allow_null=True, help_text="At most; null: no cap."
    )
    starts_at = TimeOfDay(default=time(2), help_text="In the site's time zone.")
    budget_usd = serializers.DecimalField(
        12, 4, min_value=Decimal("0.0001"), default=None, allow_null=True, help_text="Of each night."
    )
    mode = serializers.ChoiceField(Run.Mode.values, default=Run.Mode.LIVE)
    anchor_set = serializers.CharField(
        max_length=120, default=None, allow_null=True, help_text="Name of a curated chat set; null: none."
    )
    anchors = serializers.IntegerField(
        min_value=0, max_value=MOST_ANCHORS, default=0, help_text="Of it a night; 0: all of the set."
    )
    audit_share = serializers.FloatField(
        min_value=0, max_value=1, default=0, help_text="Random share of the judged chats for raters."
    )
    oversample = serializers.IntegerField(
        min_value=0, max_value=MOST_CHATS, default=0, help_text="Further chats with a verdict of False."
    )
    overlap = serializers.IntegerField(min_value=1, max_value=MOST_OVERLAP, default=1)
    raters = serializers.ListField(
        child=serializers.CharField(), max_length=MOST_RATERS, default=list, help_text="User names."
    )
    group = serializers.CharField(max_length=150, default=None, allow_null=True)
    criteria = serializers.ListField(
        child=serializers.CharField(max_length=64),
        max_length=1000,
        default=list,
        help_text="What raters are asked; empty: every active criterion.",
    )


class StratumOutput(serializers.Serializer[Any]):
    """A topic of a day: `n` of `size` chats."""

    topic = serializers.CharField()
    size = serializers.IntegerField()
    n = serializers.IntegerField()
    probability = serializers.FloatField(help_text="Inclusion probability of each of its chats.")


class PreviewOutput(serializers.Serializer[Any]):
    """What a plan would have sampled yesterday."""

    day = serializers.DateField()
    frame = serializers.IntegerField(help_text="Chats that could be sampled.")
    chats = serializers.IntegerField()
    raters = serializers.IntegerField(help_text="Chats of the random share.")
    strata = StratumOutput(many=True)
    shortfalls = serializers.ListField(child=serializers.CharField())


class NightOutput(serializers.Serializer[Any]):
    """A night: its sample, and what became of the judge's run and the raters' job."""

    id = serializers.IntegerField()
    day = serializers.DateField(help_text="The day whose chats were sampled.")
    drawn_at = serializers.DateTimeField()
    caught_up = serializers.BooleanField()
    frame = serializers.IntegerField(help_text="Chats that could be sampled.")
    chats = serializers.IntegerField(help_text="Chats in the sample.")
    seed = serializers.IntegerField()
    settings = serializers.DictField()
    strata = StratumOutput(many=True)
    shortfalls = serializers.ListField(child=serializers.CharField())
    set = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text="empty, waiting, refused, or the run's state.")
    state_label = serializers.CharField()
    problem = serializers.CharField(help_text="What stopped the judge; empty if nothing did.")
    run = serializers.IntegerField(allow_null=True)
    anchor_run = serializers.IntegerField(allow_null=True)
    anchor_problem = serializers.CharField(help_text="Why the anchors were not judged; empty if nothing.")
    cost_usd = serializers.FloatField(allow_null=True)
    job = serializers.IntegerField(allow_null=True)
    labels_problem = serializers.CharField()


class PlanOutput(serializers.Serializer[Any]):
    """A plan with its judge and its last night."""

    id = serializers.IntegerField()
    state = serializers.ChoiceField(SamplePlan.State.values)
    name = serializers.CharField()
    rubric = serializers.CharField()
    profile = serializers.CharField()
    chats = serializers.IntegerField()
    rule = serializers.CharField()
    minimum = serializers.IntegerField()
    maximum = serializers.IntegerField(allow_null=True)
    starts_at = TimeOfDay()
    first_day = serializers.DateField(help_text="Earlier days are not sampled.")
    budget_usd = serializers.FloatField(allow_null=True)
    mode = serializers.CharField()
    anchor_set = serializers.CharField(allow_null=True)
    anchors = serializers.IntegerField(help_text="Anchor chats a night.")
    audit_share = serializers.FloatField()
    oversample = serializers.IntegerField()
    overlap = serializers.IntegerField()
    raters = serializers.ListField(child=serializers.CharField())
    group = serializers.CharField(allow_null=True)
    criteria = serializers.ListField(child=serializers.CharField())
    last_night = NightOutput(allow_null=True)


def plan_body(row: PlanRow) -> dict[str, Any]:
    """Return a plan as the API shows it; its raters and criteria were prefetched."""
    plan, judge = row.plan, row.judge
    names = ("state", "name", "chats", "rule", "minimum", "maximum", "starts_at", "first_day")
    body = {name: getattr(plan, name) for name in (*names, "audit_share", "oversample", "overlap")}
    return PlanOutput(
        body
        | {
            "id": plan.pk,
            "rubric": plan.rubric.name,
            "profile": judge.profile.name,
            "budget_usd": judge.budget_usd,
            "mode": judge.mode,
            "anchor_set": judge.anchor_set.name if judge.anchor_set else None,
            "anchors": judge.anchors,
            "raters": sorted(user.get_username() for user in plan.raters.all()),
            "group": plan.group.name if plan.group else None,
            "criteria": [one.key for one in plan.criteria.all()],
            "last_night": night_json(row.last) if row.last else None,
        }
    ).data


def night_json(row: NightRow) -> dict[str, Any]:
    """Return a night with the keys of NightOutput."""
    draw, run = row.draw, row.run
    names = ("day", "drawn_at", "caught_up", "seed", "settings", "strata", "shortfalls", "labels_problem")
    return {name: getattr(draw, name) for name in names} | {
        "id": draw.pk,
        "frame": draw.frame_size,
        "chats": draw.sampled,
        "set": draw.chat_set.name if draw.chat_set else "",
        "state": row.state,
        "state_label": row.state_label,
        "problem": row.trouble,
        "run": run.pk if run else None,
        "anchor_run": row.anchor_run.pk if row.anchor_run else None,
        "anchor_problem": row.anchor_problem,
        "cost_usd": run.cost_usd if run else None,
        "job": draw.job_id,
    }


def preview_json(preview: PlanPreview) -> dict[str, Any]:
    """Return a preview with the keys of PreviewOutput."""
    return {
        "day": preview.day,
        "frame": preview.frame_size,
        "chats": preview.allocation.n,
        "raters": preview.raters,
        "strata": [
            {"topic": one.key, "size": one.size, "n": one.n, "probability": one.probability}
            for one in preview.strata
        ],
        "shortfalls": [kind.value for kind in preview.allocation.shortfalls],
    }


# ---------- names in the body, rows in the services ----------


def stored_values(plan: SamplePlan) -> dict[str, Any]:
    """Return a plan's values with the names of PlanInput, as a change starts from."""
    judge = NightlyJudge.objects.select_related("profile", "anchor_set").get(plan=plan)
    names = ("name", "chats", "rule", "minimum", "maximum", "starts_at", "audit_share", "oversample")
    return {name: getattr(plan, name) for name in (*names, "overlap")} | {
        "rubric": plan.rubric.name,
        "profile": judge.profile.name,
        "budget_usd": judge.budget_usd,
        "mode": judge.mode,
        "anchor_set": judge.anchor_set.name if judge.anchor_set else None,
        "anchors": judge.anchors,
        "raters": [user.get_username() for user in plan.raters.all()],
        "group": plan.group.name if plan.group else None,
        "criteria": [row.key for row in plan.criteria.filter(state=Criterion.State.ACTIVE)],
    }


def plan_settings(body: dict[str, Any]) -> PlanSettings:
    """Return the settings that a body describes. Raises FieldProblem for an unknown name."""
    rubric = Rubric.objects.filter(name=body["rubric"]).first()
    if rubric is None:
        raise FieldProblem("rubric", f"There is no rubric {body['rubric']!r}.")
    same = ("name", "starts_at", "audit_share", "oversample", "overlap")
    return PlanSettings(
        **{name: body[name] for name in same},
        rubric=rubric,
        size=SampleSize(body["chats"], body["rule"], body["minimum"], body["maximum"]),
        raters=_accounts(body["raters"]),
        group=_group(body["group"]),
        criteria=_criteria(rubric, body["criteria"]),
    )


def judge_choice(body: dict[str, Any]) -> JudgeChoice:
    """Return the judge that a body describes. Raises FieldProblem for an unknown profile."""
    profile = JudgeProfile.objects.filter(name=body["profile"]).first()
    if profile is None:
        raise FieldProblem("profile", f"There is no judge profile {body['profile']!r}.")
    anchors = _anchor_set(body["anchor_set"])
    size = min(anchors.members.count(), MOST_ANCHORS) if anchors else 0
    return JudgeChoice(
        profile,
        body["budget_usd"],
        Run.Mode(body["mode"]),
        anchor_set=anchors,
        anchors=(body["anchors"] or size) if anchors else 0,
    )


def _anchor_set(name: str | None) -> ChatSet | None:
    if name is None:
        return None
    chat_set = ChatSet.objects.filter(name=name).first()
    if chat_set is None:
        raise FieldProblem("anchor_set", f"There is no chat set {name!r}.")
    return chat_set


def _accounts(names: list[str]) -> list[User]:
    accounts = {user.get_username(): user for user in labelling_accounts().filter(username__in=names)}
    if unknown := [name for name in names if name not in accounts]:
        raise FieldProblem("raters", f"No account {unknown[0]!r} may label.")
    return list(accounts.values())


def _group(name: str | None) -> Group | None:
    if name is None:
        return None
    group = Group.objects.filter(name=name).first()
    if group is None:
        raise FieldProblem("group", f"There is no group {name!r}.")
    return group


def _criteria(rubric: Rubric, keys: list[str]) -> list[Criterion]:
    active = {row.key: row for row in rubric.criteria.filter(state=Criterion.State.ACTIVE)}
    if unknown := [key for key in keys if key not in active]:
        raise FieldProblem("criteria", f"{unknown[0]} is not active in the plan's rubric.")
    return [active[key] for key in dict.fromkeys(keys)]
