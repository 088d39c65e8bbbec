"""The first sentences of the monitoring page: what changed, by how much, and whether bot or judge did."""

from datetime import date, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from alignment.models.alerts import Alert, WatchStep
from alignment.monitoring.queries.lede import Lede, lede, standing_changes
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric
from labeling.models.sampling import SamplePlan
from labeling.sampling.queries import yesterday
from labeling.sampling.services import draw_night
from tests.factories.alerts import SIGNAL, make_alert
from tests.factories.nights import make_plan
from tests.factories.production import Judged, production_day
from tests.factories.rows import make_rubric
from tests.factories.verdicts import make_judge

pytestmark = pytest.mark.django_db
WEDNESDAY = date(2026, 11, 18)
RATE = SIGNAL | {"before": 0.72, "now": 0.66, "expected": [0.68, 0.76]}
ANCHORS = SIGNAL | {"stream": "anchors", "change": "stricter", "before": 0.02, "now": 0.37}


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", "clear", "short")


@pytest.fixture
def polite(rubric: Rubric) -> Criterion:
    return rubric.criteria.get(key="polite")


@pytest.fixture
def plan(rubric: Rubric, lead_user: User) -> SamplePlan:
    return make_plan(rubric, by=lead_user)


def said(rubric: Rubric) -> Lede:
    found = lede(list(rubric.criteria.values_list("pk", flat=True)), standing_changes())
    assert found is not None
    return found


def test_it_says_what_changed_since_when_and_that_the_bot_did(
    plan: SamplePlan, rubric: Rubric, polite: Criterion
) -> None:
    live = {"bot_version": "5.2", "bot_live_on": WEDNESDAY}
    make_alert(plan, criterion=polite, cause="bot", began_on=WEDNESDAY, signals=[RATE], **live)
    found = said(rubric)
    assert found.headline == "1 of 3 criteria changed in week 47."
    assert found.rate == "passes in 0.66 of judged chats, uncorrected, since 18 Nov, expected 0.68–0.76."
    assert found.cause == "The anchor chats are stable, so the bot changed. Bot 5.2 went live that day."


@pytest.mark.parametrize(
    ("cause", "signals", "words"),
    [
        ("unclear", [RATE], "It is not yet clear whether the bot or the judge changed."),
        ("judge", [RATE, ANCHORS], "Only the judge can move the anchor chats, so the judge changed."),
        ("bot", [RATE, RATE | {"stream": "audit"}], "Raters’ labels moved, too, so the bot changed."),
    ],
)
def test_it_names_the_cause(
    plan: SamplePlan, rubric: Rubric, polite: Criterion, cause: str, signals: Any, words: str
) -> None:
    make_alert(plan, criterion=polite, cause=cause, signals=signals)
    assert said(rubric).cause == words


def test_it_has_no_figure_of_anchors(plan: SamplePlan, rubric: Rubric, polite: Criterion) -> None:
    make_alert(plan, criterion=polite, cause="judge", began_on=WEDNESDAY, signals=[ANCHORS])
    assert said(rubric).rate == "has other answers on the anchor chats since 18 Nov."


def test_it_is_about_the_newest_change_that_nobody_acknowledged(
    plan: SamplePlan, rubric: Rubric, polite: Criterion
) -> None:
    clear = rubric.criteria.get(key="clear")
    make_alert(plan, criterion=polite, cause="bot", began_on=WEDNESDAY)
    newest = make_alert(plan, criterion=clear, cause="bot", began_on=WEDNESDAY + timedelta(days=7))
    make_alert(plan, kind="verdicts", cause="", criterion=polite, signals=[{"n": 1, "needed": 9}])
    found = said(rubric)
    assert (found.headline, found.alert) == ("2 of 3 criteria changed since 18 Nov.", newest)
    Alert.objects.filter(pk=newest.pk).update(acknowledged_at=timezone.now())
    assert said(rubric).name == polite.name
    make_alert(plan, cause="judge", began_on=WEDNESDAY + timedelta(days=8), signals=[ANCHORS])
    assert said(rubric).name == "All criteria"


def test_without_an_alert_it_says_how_many_criteria_are_watched(plan: SamplePlan, rubric: Rubric) -> None:
    assert lede([], standing_changes()) is None
    for back, watched in ((2, 0), (1, 3)):
        draw = draw_night(plan=plan, day=yesterday() - timedelta(days=back), spreads={})
        WatchStep.objects.create(plan=plan, draw=draw, day=draw.day, counts={"watched": watched})
    assert said(rubric).headline == "None of 3 watched criteria changed."


def test_the_page_shows_it_with_a_link_to_the_alert(
    client: Client, lead_user: User, plan: SamplePlan, rubric: Rubric, polite: Criterion
) -> None:
    production_day(WEDNESDAY, {"refund": Judged(30, 8, 2)}, judge=make_judge(rubric), rubric=rubric)
    client.force_login(lead_user)
    assert "Passing share of production chats over time." in page(client)
    row = make_alert(plan, criterion=polite, cause="bot", began_on=WEDNESDAY, signals=[RATE])
    text = page(client)
    link = f'<a href="{reverse("alerts:detail", args=[row.pk])}">{polite.name}</a> passes in 0.66'
    assert "1 of 3 criteria changed in week 47." in text
    assert link in text
    assert "so the bot changed." in text


def page(client: Client) -> str:
    return " ".join(client.get(reverse("monitoring:overview")).content.decode().split())
