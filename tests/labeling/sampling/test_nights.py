"""A night's sample out of the database: the same as in Python, each chat once, missed days once."""

from datetime import datetime, time, timedelta
from random import Random

import pytest
from django.utils import timezone

from common.problems import FieldProblem
from labeling.chats.core.allocation import AllocationRule
from labeling.models.chats import ChatSetMember
from labeling.models.people import AuditEvent, User
from labeling.models.sampling import SampledChat, SampleDraw
from labeling.sampling.core import (
    NO_LIMIT,
    TopicStratum,
    allocate,
    key_limit,
    key_prefix,
    sample_chats,
    sample_keyed,
    sampling_key,
)
from labeling.sampling.queries import SampleSize, day_sample, due_days, yesterday
from labeling.sampling.services import DrawRefused, draw_night, plan_pause, plan_resume
from tests.factories.nights import arrived, make_plan
from tests.factories.rows import make_rubric, make_set

pytestmark = pytest.mark.django_db


def test_the_database_takes_the_same_chats_as_the_stream() -> None:
    chats = arrived({"refund": 60, "delivery": 25, "other": 3})
    size = SampleSize(20, "proportional", minimum=2)
    found = day_sample(yesterday(), size=size, spreads={}, seed=7)
    frame = [(chat.pk, chat.topic.key) for chat in chats]
    assert found.chats == sample_chats(frame, found.allocation, seed=7)
    assert [one.n for one in found.allocation.strata] == [5, 2, 13]


def test_below_the_limits_are_the_smallest_keys() -> None:
    frame = [(n, "big" if n % 10 else "small") for n in range(20_000)]
    topics = [TopicStratum("big", 18_000), TopicStratum("small", 2_000)]
    allocation = allocate(topics, 500, rule=AllocationRule.SQRT)
    prefix = key_prefix(11, "judge")
    limits = {one.key: key_limit(one.n, one.size) for one in allocation.strata}
    keyed = [(sampling_key(chat, prefix=prefix), chat, topic) for chat, topic in frame]
    below = [one for one in keyed if one[0] < limits[one[2]]]
    assert len(below) < 2_500  # of 20,000
    assert sample_keyed(Random(1).sample(below, len(below)), allocation) == sample_chats(
        frame, allocation, seed=11
    )
    assert sample_keyed(below[:100], allocation) is None
    assert key_limit(9, 10) == NO_LIMIT


def test_a_chat_is_sampled_once_by_all_plans_together(lead_user: User) -> None:
    chats = arrived({"refund": 20})
    rubric = make_rubric("polite")
    make_set(rubric, chats[0], split="holdout")
    first, second = (make_plan(rubric, by=lead_user, name=name, chats=12) for name in ("One", "Two"))
    draws = [draw_night(plan=plan, day=yesterday(), spreads={}) for plan in (first, second)]
    assert [(draw.frame_size, draw.sampled) for draw in draws] == [(19, 12), (7, 7)]
    assert draws[1].shortfalls == ["few_chats"]
    sampled = set(SampledChat.objects.values_list("chat", flat=True))
    assert len(sampled) == 19
    assert chats[0].pk not in sampled  # somebody chose it for a set


def test_a_draw_is_a_set_with_probabilities_in_random_order(lead_user: User) -> None:
    arrived({"refund": 30, "other": 4})
    plan = make_plan(make_rubric("polite"), by=lead_user, chats=10, minimum=4)
    draw = draw_night(plan=plan, day=yesterday(), spreads={}, seed=5)
    members = ChatSetMember.objects.filter(chat_set=draw.chat_set)
    found = {(one.stratum, one.inclusion_probability, one.split) for one in members}
    assert found == {("refund", 0.2, "dev"), ("other", 1.0, "dev")}
    ids = list(members.order_by("position").values_list("chat", flat=True))
    prefix = key_prefix(5, "judge")
    assert ids == sorted(ids, key=lambda pk: sampling_key(pk, prefix=prefix))
    assert {"topic": "other", "size": 4, "n": 4, "probability": 1.0} in draw.strata
    assert AuditEvent.objects.filter(verb="night sampled").count() == 1


def test_a_day_is_sampled_once_and_not_before_it_is_over(lead_user: User) -> None:
    plan = make_plan(make_rubric("polite"), by=lead_user)
    draw = draw_night(plan=plan, day=yesterday(), spreads={})
    assert (draw.sampled, draw.chat_set, draw.labels_done) == (0, None, True)
    with pytest.raises(DrawRefused, match="already"):
        draw_night(plan=plan, day=yesterday(), spreads={})
    with pytest.raises(DrawRefused, match="not over"):
        draw_night(plan=plan, day=timezone.localdate(), spreads={})
    assert SampleDraw.objects.count() == 1


def test_missed_days_are_due_for_a_week_but_not_those_of_a_pause(lead_user: User) -> None:
    plan = make_plan(make_rubric("polite"), by=lead_user, days_back=30, starts_at=time(3))
    today = timezone.localdate()
    at = timezone.make_aware(datetime.combine(today, time(4)))
    days = [today - timedelta(days=n) for n in range(7, 0, -1)]
    assert due_days(plan, now=at) == days
    assert due_days(plan, now=at - timedelta(hours=2))[-1] == days[-2]  # before three
    SampleDraw.objects.create(plan=plan, day=days[2], seed=1, settings={})
    assert due_days(plan, now=at) == days[:2] + days[3:]
    plan = plan_resume(plan=plan_pause(plan=plan, by=lead_user), by=lead_user)
    assert due_days(plan, now=at) == []
    assert due_days(plan, now=at + timedelta(days=1)) == [today]


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("name", {"name": " "}),
        ("chats", {"chats": 0}),
        ("minimum", {"minimum": 7}),
        ("audit_share", {"audit_share": 1.5}),
        ("raters", {"audit_share": 0.1}),
    ],
)
def test_wrong_settings_are_refused_by_field(field: str, wrong: dict[str, object], lead_user: User) -> None:
    with pytest.raises(FieldProblem) as refused:
        make_plan(make_rubric("polite"), by=lead_user, **wrong)  # type: ignore[arg-type]
    assert refused.value.field == field
