"""What happens at night: due days are sampled and judged once, and what stops a judge is told."""

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from common.models import InboxItem
from evaluation.gateway.current import current_endpoint
from evaluation.models.nightly import NightlyJudge, NightlyRun
from evaluation.models.runs import Run, Verdict
from evaluation.nightly.queries import spreads_of
from evaluation.nightly.services import night_sample, nights_work
from labeling.models.people import User
from labeling.models.sampling import SampleDraw
from labeling.sampling.queries import yesterday
from labeling.sampling.services import plan_pause
from tests.factories.nights import arrived, make_plan
from tests.factories.rows import make_rubric
from tests.factories.runs import MODEL, command, point_at

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def endpoint(settings: Settings) -> None:
    point_at(settings, "http://127.0.0.1:9/v1")


@pytest.fixture
def prices(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({MODEL: {"input": 1, "output": 2}}))
    settings.LACE_PRICES = str(path)


@pytest.mark.usefixtures("prices")
def test_a_due_day_is_sampled_and_judged_once_with_the_budget(lead_user: User) -> None:
    arrived({"refund": 10, "other": 4})
    make_plan(make_rubric("polite"), by=lead_user, budget_usd=Decimal("1.5"))
    for _ in range(2):
        nights_work()
    run = Run.objects.get()
    assert (run.budget_usd, run.started_by, run.units_total) == (Decimal("1.5"), lead_user, 6)
    assert NightlyRun.objects.get().run == run
    sampled = set(SampleDraw.objects.get().chats.values_list("chat", flat=True))
    assert set(run.run_chats.values_list("chat", flat=True)) == sampled


def test_missed_nights_are_caught_up_and_a_paused_plan_rests(lead_user: User) -> None:
    rubric = make_rubric("polite")
    make_plan(rubric, by=lead_user, days_back=3)
    plan_pause(plan=make_plan(rubric, by=lead_user, name="Resting"), by=lead_user)
    nights_work()
    draws = SampleDraw.objects.order_by("day")
    assert [(draw.plan.name, draw.caught_up, draw.sampled) for draw in draws] == [
        ("Production", True, 0),
        ("Production", True, 0),
        ("Production", False, 0),
    ]
    assert not Run.objects.exists()  # no chats, no run


def test_a_judge_that_cannot_start_is_told_once_and_tried_again(
    client: Client, lead_user: User, settings: Settings, tmp_path: Path
) -> None:
    arrived({"refund": 10})
    plan = make_plan(make_rubric("polite"), by=lead_user, budget_usd=Decimal(2))
    for _ in range(2):
        nights_work()  # no price is known, so that no budget can be kept
    assert not Run.objects.exists()
    assert InboxItem.objects.get(user=lead_user).subject == f"plan:{plan.pk}"
    client.force_login(lead_user)
    text = client.get(reverse("evaluation:sample_plan", args=[plan.pk])).content.decode()
    assert "Judge not started" in text
    assert "price" in text
    inbox = client.get(reverse("inbox")).content.decode()
    assert "sample plan Production" in inbox
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({MODEL: {"input": 1, "output": 2}}))
    settings.LACE_PRICES = str(path)
    nights_work()
    assert NightlyRun.objects.get().run == Run.objects.get()


def test_the_page_says_what_stopped_the_judge(client: Client, lead_user: User) -> None:
    arrived({"refund": 10})
    plan = make_plan(make_rubric("polite"), by=lead_user)
    night_sample(plan=plan, day=yesterday())
    Run.objects.update(state="paused", error="the budget of $2.00 is reached", units_done=3)
    client.force_login(lead_user)
    for url in (reverse("evaluation:sample_plan", args=[plan.pk]), reverse("evaluation:sample_plan_list")):
        text = client.get(url).content.decode()
        assert "Paused: 3 of 6" in text
        assert "The budget of $2.00 is reached" in text


def test_a_run_that_waits_for_its_endpoint_is_told_once(lead_user: User) -> None:
    arrived({"refund": 10})
    plan = make_plan(make_rubric("polite"), by=lead_user)
    night_sample(plan=plan, day=yesterday())
    Run.objects.update(error="connection: the endpoint does not answer")
    nights_work()
    assert not InboxItem.objects.exists()  # it may be back soon
    NightlyRun.objects.update(tried_at=timezone.now() - timedelta(hours=1))
    nights_work()
    assert InboxItem.objects.filter(read_at=None).update(read_at=timezone.now()) == 1
    nights_work()
    assert not InboxItem.objects.filter(read_at=None).exists()
    Run.objects.update(error="")
    nights_work()
    assert NightlyRun.objects.get().problem == ""


def test_a_lead_starts_a_refused_judge_by_hand(client: Client, lead_user: User) -> None:
    arrived({"refund": 10})
    plan = make_plan(make_rubric("polite"), by=lead_user, budget_usd=Decimal(2))
    draw = night_sample(plan=plan, day=yesterday())
    NightlyJudge.objects.update(budget_usd=None)
    client.force_login(lead_user)
    url = reverse("evaluation:sample_night_judge", args=[plan.pk, draw.pk])
    for _ in range(2):
        client.post(url)
    assert Run.objects.get().judge.endpoints[0] == current_endpoint().id
    assert NightlyRun.objects.get().problem == ""


def test_neyman_learns_from_the_verdicts_of_earlier_nights(lead_user: User) -> None:
    arrived({"refund": 10, "other": 10})
    plan = make_plan(make_rubric("polite"), by=lead_user, chats=20, rule="neyman")
    assert spreads_of(plan, rule=plan.rule) == {}
    draw = night_sample(plan=plan, day=yesterday())
    run, criterion = Run.objects.get(), plan.rubric.criteria.get()
    stored = run.created_at
    Verdict.objects.bulk_create(
        Verdict(
            run=run,
            chat_id=one.chat_id,
            criterion=criterion,
            state="read",
            value=one.stratum == "other" or n % 2 == 0,
            stored_at=stored,
        )
        for n, one in enumerate(draw.chats.order_by("stratum", "pk"))
    )
    spreads = spreads_of(plan, rule=plan.rule)
    assert spreads["refund"] > spreads["other"] > 0
    assert spreads_of(plan, rule="equal") == {}


@pytest.mark.django_db(transaction=True)
def test_the_command_samples_a_day_and_shows_it_before(lead_user: User) -> None:
    arrived({"refund": 10, "other": 4})
    make_plan(make_rubric("polite"), by=lead_user)
    shown = command("draw_sample", "Production", "--dry-run")
    assert (shown.answer["frame"], shown.answer["chats"]) == (14, 6)
    assert not SampleDraw.objects.exists()
    done = command("draw_sample", "Production", "--seed", "3", "--by", "ines")
    assert done.code == 0, done.err
    assert done.answer["run"] == Run.objects.get().pk
    assert SampleDraw.objects.get().seed == 3
    again = command("draw_sample", "Production")
    assert (again.code, "has sampled" in again.error) == (2, True)
    assert command("draw_sample", "Nobody").code == 2
