"""Chats that arrived on a day, and sample plans over them."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from django.utils import timezone

from evaluation.models.judges import JudgeProfile
from evaluation.models.nightly import NightlyRun
from evaluation.nightly.services import JudgeChoice, nightly_plan_save
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Rubric
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.sampling.queries import SampleSize, yesterday
from labeling.sampling.services import PlanSettings
from tests.factories.rows import make_chat


def arrived(topics: Mapping[str, int], *, day: date | None = None) -> list[Chat]:
    """Chats of these topics that arrived at noon of a day, by default yesterday."""
    at = timezone.make_aware(datetime.combine(day or yesterday(), time(12)))
    chats = [
        make_chat(topic=topic, messages=[("user", f"In case {topic}-{n}: help!"), ("assistant", "Here.")])
        for topic, count in topics.items()
        for n in range(count)
    ]
    Chat.objects.filter(pk__in=[chat.pk for chat in chats]).update(created_at=at)
    return chats


def make_plan(
    rubric: Rubric,
    *,
    by: User | None,
    chats: int = 6,
    rule: str = "proportional",
    minimum: int = 0,
    profile: JudgeProfile | None = None,
    budget_usd: Any = None,
    days_back: int = 1,
    **settings: Any,
) -> SamplePlan:
    """A plan whose first day is `days_back` days ago."""
    plan = nightly_plan_save(
        settings=PlanSettings(
            **{
                "name": "Production",
                "rubric": rubric,
                "size": SampleSize(chats, rule, minimum),
                "starts_at": time(0),
                **settings,
            }
        ),
        judge=JudgeChoice(profile or _profile(), budget_usd),
        by=by,
    )
    plan.first_day = timezone.localdate() - timedelta(days=days_back)
    plan.save(update_fields=["first_day"])
    return plan


def stored_night(rubric: Rubric, *, by: User, text: str) -> dict[str, int]:
    """The ids of a plan and of a night of it, the day before yesterday; what both say has this text."""
    profile = JudgeProfile.objects.create(name=f"{text}-nightly", config={"engine": "direct"})
    plan = make_plan(rubric, by=by, name=f"{text}-plan", profile=profile)
    draw = SampleDraw.objects.create(
        plan=plan,
        day=yesterday() - timedelta(days=1),
        seed=1,
        settings={},
        strata=[{"topic": f"{text}-topic", "size": 2, "n": 1, "probability": 0.5}],
        frame_size=2,
        sampled=1,
        labels_problem=f"{text}-labels",
    )
    NightlyRun.objects.create(draw=draw, problem=f"{text}-problem", tried_at=timezone.now())
    return {"plan_id": plan.pk, "draw_id": draw.pk}


def _profile() -> JudgeProfile:
    row, _ = JudgeProfile.objects.get_or_create(name="Every night", defaults={"config": {"engine": "direct"}})
    return row
