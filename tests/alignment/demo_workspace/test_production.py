"""The demo's weeks in production: chats, samples, verdicts and labels as the services leave them."""

from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from alignment.demo_workspace.core.production import DAYS_A_WEEK, WEEKS, week_of, weeks_begin
from alignment.demo_workspace.queries import production, production_settings
from alignment.demo_workspace.services import production as produced
from alignment.demo_workspace.services.demo_workspace import demo_begin, people_ensure
from alignment.demo_workspace.services.steps import Demo, steps_run
from alignment.models.audits import AuditNight
from alignment.nightly_labels.services import night_jobs_work
from evaluation.day_counts.queries import is_exact
from evaluation.models.nightly import NightlyRun
from evaluation.models.runs import Run
from evaluation.nightly.services import nights_work
from labeling.models.chats import Chat
from labeling.models.labels import Assignment, Label, LabelingJob
from labeling.models.sampling import SampledChat, SampleDraw, SamplePlan

SETTINGS = production_settings()
# Chats of the small demo of these tests: enough for three a day of the last two weeks.
SMALL, FEW_WEEKS = 15, (7, 8)
STEPS = (
    "a judge for every night",
    "a sample plan",
    *(f"production, week {week}" for week in FEW_WEEKS),
    "labels of the random audit, counted",
)


# ---------- composed ----------


def rate(criterion: str, good: bool, **about: Any) -> float:
    """The share of chats in production with this answer, of those with these facts."""
    weeks = about.pop("weeks", range(1, WEEKS + 1))
    truth = [
        chat.truth[criterion]
        for day in production()
        for chat in day
        if week_of(chat.day) in weeks and all(getattr(chat, name) == value for name, value in about.items())
    ]
    applicable = [answer for answer in truth if answer is not None]
    return sum(answer == good for answer in applicable) / len(applicable)


def test_a_day_has_some_120_chats_of_uneven_topics_a_few_of_them_unknown() -> None:
    sizes = [len(day) for day in production()]
    assert len(sizes) == WEEKS * DAYS_A_WEEK
    assert 100 < min(sizes) < 120 < max(sizes) < 140
    topics = Counter(chat.topic for day in production() for chat in day)
    assert topics["late_delivery"] > 5 * topics["alcohol"]
    assert 0.02 < topics[""] / sum(topics.values()) < 0.04


def test_a_release_in_week_6_breaks_one_criterion() -> None:
    key = "reasked_known_information"
    before, after = (rate(key, False, weeks=weeks) for weeks in (range(1, 6), range(6, 9)))
    assert before > 0.78
    assert after < 0.6
    other = "self_consistent"
    assert abs(rate(other, True, weeks=range(1, 6)) - rate(other, True, weeks=range(6, 9))) < 0.03


def test_in_week_8_the_bot_states_another_minimum_for_a_code() -> None:
    key, about = "stated_wrong_fact", {"topic": "promo_code"}
    assert rate(key, True, weeks=[8], **about) > 0.7 > 0.4 > rate(key, True, weeks=range(1, 8), **about)
    stated = [chat for day in production() for chat in day if "€60" in str(chat.talk.messages)]
    assert {week_of(chat.day) for chat in stated} == {8}


def test_a_customer_has_one_variant_and_the_short_one_has_less_padding() -> None:
    chats = [chat for day in production() for chat in day if chat.experiment]
    assert {week_of(chat.day) for chat in chats} == {3, 4, 5}
    variants: dict[str, set[str]] = {}
    for chat in chats:
        variants.setdefault(chat.customer, set()).add(chat.variant)
    assert all(len(some) == 1 for some in variants.values())
    assert len(chats) > 1.3 * len(variants)  # customers come again
    short, control = (rate("concise_replies", True, variant=name) for name in ("short", "control"))
    assert short > control + 0.08


def test_the_weeks_begin_on_a_monday_and_the_last_holds_yesterday() -> None:
    for number in range(7):
        last = date(2026, 11, 23) + timedelta(days=number)
        first = weeks_begin(last)
        assert first.weekday() == 0
        assert 49 <= (last - first).days <= 55


# ---------- in the workspace ----------


def build_small(folder: Path) -> Demo:
    """A demo with few chats and weeks, without the history before production."""
    with override_settings(VAR_DIR=folder):
        first_day = demo_begin()
        rater, author, lead = people_ensure(password="a long password")
        demo = Demo(first_day, rater, author, lead, "a long password", chats=SMALL)
        steps = [*demo.labelling(), *(one for one in demo.judging() if one.name in STEPS)]
        for _ in steps_run(steps, first_day=first_day):
            pass
    return demo


@pytest.fixture(scope="module")
def small_once(
    module_rows: Callable[[Callable[[], Demo]], Demo], tmp_path_factory: pytest.TempPathFactory
) -> Demo:
    return module_rows(lambda: build_small(tmp_path_factory.mktemp("demo")))


@pytest.fixture
def small(small_once: Demo, db: None) -> Demo:
    return small_once


def days(demo: Demo) -> list[date]:
    return [day for week in FEW_WEEKS for day, _ in demo.show.days(week)]


def nights() -> list[NightlyRun]:
    return list(NightlyRun.objects.select_related("run__judge", "draw").order_by("draw__day"))


def test_each_chat_arrives_on_its_day_and_is_marked(small: Demo) -> None:
    chats = Chat.objects.filter(source="shop-bot")
    assert chats.count() == 3 * len(days(small))
    for chat in chats:
        assert chat.started_at is not None
        assert timezone.localdate(chat.created_at) == timezone.localdate(chat.started_at)
        assert chat.created_at < timezone.now()
    assert set(chats.values_list("origin", flat=True)) == {"demo"}
    assert {chat.metadata["bot_version"] for chat in chats} == {"2.10"}


def test_every_night_was_sampled_and_judged_on_the_morning_after(small: Demo) -> None:
    assert [night.draw.day for night in nights()] == days(small)
    for night in nights():
        run = night.run
        assert run is not None
        assert run.state == "done"
        assert timezone.localdate(run.created_at) == night.draw.day + timedelta(days=1)
        assert run.finished_at is not None
        assert run.created_at < run.finished_at < timezone.now()
        assert 0 < (run.cost_usd or 0) < (run.budget_usd or 0)


def test_samples_hold_their_strata_and_inclusion_probabilities(small: Demo) -> None:
    for draw in SampleDraw.objects.all():
        chances = {one["topic"]: one["probability"] for one in draw.strata}
        assert sum(one["n"] for one in draw.strata) == draw.sampled == draw.chats.count()
        assert all(row.probability == chances[row.stratum] for row in draw.chats.all())


def test_counts_by_day_are_those_of_the_verdicts(small: Demo) -> None:
    assert all(is_exact(night.run_id or 0) for night in nights())


def test_raters_have_labelled_the_audit_share_but_not_the_newest_nights(small: Demo) -> None:
    audited = SampledChat.objects.filter(label_source="audit").order_by("draw__day")
    assert audited.exists()
    newest = small.show.last - timedelta(days=produced.NIGHTS_UNLABELLED)
    twice = small.show.last - timedelta(days=produced.NIGHTS_OPEN)
    for row in audited.select_related("draw"):
        labels, day = Label.objects.filter(chat=row.chat_id), row.draw.day
        assert labels.count() == 14 * (0 if day > newest else 2 if day > twice else 1)
        assert labels.exclude(source="demo").count() == 0
    submitted = Assignment.objects.filter(job__in=SampleDraw.objects.values("job"), state="submitted")
    assert (
        submitted.count() == Label.objects.filter(assignment__in=submitted).values("chat").distinct().count()
    )


def test_the_random_audit_of_each_labelled_night_is_counted(small: Demo) -> None:
    counted = AuditNight.objects.values_list("draw", flat=True)
    labelled = SampledChat.objects.filter(label_source="audit", chat__in=Label.objects.values("chat"))
    assert set(counted) >= set(labelled.values_list("draw", flat=True))


def test_the_nightly_judge_is_the_one_whose_errors_the_labelled_chats_show(small: Demo) -> None:
    curated = Run.objects.get(chat_set__name="Support chats", purpose="evaluation")
    assert {night.run.judge_id for night in nights() if night.run} == {curated.judge_id}


def test_nothing_is_due_and_a_second_start_changes_nothing(small: Demo) -> None:
    before = {model: model._default_manager.count() for model in (Chat, SampleDraw, Run, LabelingJob, Label)}
    plan = SamplePlan.objects.get()
    produced.plan_ensure(small.show)
    for week in FEW_WEEKS:
        produced.week_ensure(small.show, week)
    night_jobs_work()
    if timezone.localtime().time() >= plan.starts_at:
        nights_work()
    assert before == {model: model._default_manager.count() for model in before}
