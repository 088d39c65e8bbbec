"""The page of an experiment in a browser: the chart under the CSP, and to a failing chat by keyboard."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.chats import Chat
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.experiments import counted, judged_night, units
from tests.factories.judged_job import judge_of
from tests.factories.rows import make_rubric

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lead(page: Page, live_server: LiveServer) -> Iterator[Page]:
    rubric = make_rubric("polite", "brief")
    judge = judge_of("direct")
    for day in range(4):
        arms = {
            name: units(f"{name}{day}-", passing=passing, failing=20 - passing)
            for name, passing in (("control", 14), ("short", 18))
        }
        judged_night(date(2026, 11, 2) + timedelta(days=day), arms, judge=judge, rubric=rubric)
    row = counted()
    with lead_signed_in(page, live_server.url) as signed:
        signed.goto(live_server.url + reverse("experiments:detail", args=[row.pk]))
        yield signed


@pytest.mark.parametrize("route", ["", "settings/", ".."])
def test_the_pages_are_fine_in_every_size_and_scheme(lead: Page, route: str) -> None:
    expect(lead.locator(".uplot canvas").first).to_be_visible()
    if route:
        lead.goto(lead.url + ("../" if route == ".." else route))
    assert_fine(lead)


def test_two_keys_lead_from_the_table_to_a_failing_chat_of_a_variant(lead: Page) -> None:
    points = lead.locator(".chart .point")
    expect(points).to_have_count(3)  # from the second day on, both variants have 30 units
    expect(points.last).to_have_attribute("aria-label", re.compile(r"5 Nov: \+20\.0, .* 160 units"))
    lead.get_by_role("link", name="8 failing chats of short").first.focus()
    lead.keyboard.press("Enter")
    expect(lead.get_by_text("Variant short.")).to_be_visible()
    lead.locator(".failing a").first.focus()
    lead.keyboard.press("Enter")
    expect(lead.locator("#m2:target")).to_be_visible()
    assert Chat.objects.get(pk=lead.url.split("/")[-2]).variant == "short"
