"""The pages of alerts in a browser: every size and scheme, the chart by keyboard, the settings' preview."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from alignment.models.alerts import Alert, RateMark, WatchStep
from labeling.models.people import User
from labeling.models.rubric import Rubric
from labeling.models.sampling import SamplePlan
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.alerts import SIGNAL, make_alert
from tests.factories.judged_job import judge_of
from tests.factories.nights import make_plan
from tests.factories.production import Judged, production_day
from tests.factories.rows import make_chat, make_rubric, make_set

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FIRST = date(2026, 11, 2)
ANCHORS = SIGNAL | {"stream": "anchors", "change": "stricter", "evidence": 12.0, "before": 0.02, "now": 0.37}


def watched(rubric: Rubric, plan: SamplePlan) -> None:
    """Four weeks of production, and what the watch stored of the last one."""
    polite = rubric.criteria.get(key="polite")
    judge = judge_of("one")
    for week in range(4):
        day = FIRST + timedelta(weeks=week)
        production_day(day, {"refund": Judged(60, 40 - 8 * week, 4)}, judge=judge, rubric=rubric)
    for night in range(21):
        day = FIRST + timedelta(days=night)
        failing = 2 if night < 16 else 11
        WatchStep.objects.create(
            plan=plan,
            draw=plan.draws.create(day=day, seed=1, settings={}),
            day=day,
            counts={
                "judged": {str(polite.pk): [45 - failing, 50]},
                "anchors": {str(polite.pk): {"to_false": [failing - 1, 30], "flipped": [failing, 40]}},
                "labels": {str(polite.pk): [38 - failing, 40]},
                "parts": {str(polite.pk): 0},
            },
        )
    RateMark.objects.create(
        plan=plan, criterion=polite, week=FIRST + timedelta(weeks=2), sum=5.1, marked=True
    )
    make_alert(plan, criterion=polite, cause="judge", judge=judge, signals=[ANCHORS, SIGNAL])
    make_alert(plan, criterion=rubric.criteria.get(key="brief"))
    gap = {"kind": "verdicts", "cause": "", "signals": [{"n": 12, "needed": 100, "chats": None}]}
    make_alert(plan, criterion=polite, **gap)


@pytest.fixture
def lead(page: Page, live_server: LiveServer) -> Iterator[Page]:
    rubric = make_rubric("polite", "brief")
    with lead_signed_in(page, live_server.url) as signed:
        plan = make_plan(rubric, by=User.objects.get())
        make_set(rubric, *(make_chat(f"anchor-{n}") for n in range(40)), name="Anchors")
        watched(rubric, plan)
        yield signed


def test_the_pages_are_fine_in_every_size_and_scheme(lead: Page, live_server: LiveServer) -> None:
    row = Alert.objects.get(cause="judge")
    for address in (
        reverse("alerts:list"),
        reverse("alerts:detail", args=[row.pk]),
        reverse("alerts:settings"),
        reverse("monitoring:overview"),
        reverse("evaluation:sample_plan", args=[row.plan_id]),
        reverse("evaluation:sample_plan_edit", args=[row.plan_id]),
    ):
        lead.goto(live_server.url + address)
        lead.wait_for_load_state("networkidle")
        assert_fine(lead)


def test_a_chart_is_walked_by_keyboard_and_its_table_has_the_same_nights(
    lead: Page, live_server: LiveServer
) -> None:
    lead.goto(live_server.url + reverse("alerts:detail", args=[Alert.objects.get(cause="judge").pk]))
    chart = lead.locator("figure", has=lead.locator("canvas")).first
    newest = chart.locator(".point[tabindex='0']")
    newest.focus()
    expect(newest).to_have_attribute("aria-label", re.compile("22 Nov: 0.33 .*30 anchors|22 Nov: 0.33.*"))
    lead.keyboard.press("ArrowLeft")
    expect(chart.locator(".point:focus")).to_have_attribute("aria-label", re.compile("21 Nov"))
    chart.locator("summary").click()
    expect(chart.locator("tbody tr")).to_have_count(21)


def test_a_marked_week_has_a_circle(lead: Page, live_server: LiveServer) -> None:
    lead.goto(live_server.url + reverse("monitoring:criterion", args=["polite"]))
    expect(lead.locator(".point.below")).to_have_attribute(
        "aria-label", re.compile("16–22 Nov.*below baseline")
    )


def test_the_settings_show_their_false_alarms_while_typing(lead: Page, live_server: LiveServer) -> None:
    lead.goto(live_server.url + reverse("alerts:settings"))
    expect(lead.locator("#consequences .big b")).to_have_text("0.4%")
    lead.get_by_label("False alarms a year").fill("12")
    expect(lead.locator("#consequences .big b")).to_have_text("1.0%")
    lead.goto(live_server.url + reverse("evaluation:sample_plan_edit", args=[SamplePlan.objects.get().pk]))
    lead.get_by_label("Anchor chats").select_option(label="Anchors (40 chats)")
    expect(lead.locator("#anchor-preview")).to_contain_text("40 anchors")
