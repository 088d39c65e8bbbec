"""Chats that arrived on a day, and sample plans over them."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from django.utils import timezone

from evaluation.models.judges import JudgeProfile
from evaluation.nightly.services import JudgeChoice, nightly_plan_save
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Rubric
from labeling.models.sampling import SamplePlan
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
        judge=JudgeChoice(profile or JudgeProfile.objects.get(is_default=True), budget_usd),
        by=by,
    )
    plan.first_day = timezone.localdate() - timedelta(days=days_back)
    plan.save(update_fields=["first_day"])
    return plan
