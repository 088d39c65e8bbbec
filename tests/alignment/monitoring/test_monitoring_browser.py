"""The monitoring pages in a browser: charts under the CSP, and from a point to the message by keyboard."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.chats import Chat
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.judged_job import judge_of
from tests.factories.production import Judged, production_day
from tests.factories.rows import make_rubric

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lead(page: Page, live_server: LiveServer) -> Iterator[Page]:
    rubric = make_rubric("polite", "brief")
    for week, judge in enumerate(("one", "one", "two", "two")):
        day = date(2026, 11, 2) + timedelta(weeks=week)
        topics = {"refund": Judged(30, 8, 2), "tip": Judged(20, 4, 4)}
        production_day(day, topics, judge=judge_of(judge), rubric=rubric)
    with lead_signed_in(page, live_server.url) as signed:
        signed.goto(live_server.url + reverse("monitoring:overview"))
        yield signed


@pytest.mark.parametrize("key", [None, "polite"])
def test_the_pages_are_fine_in_every_size_and_scheme(lead: Page, live_server: LiveServer, key: str) -> None:
    if key:
        lead.goto(live_server.url + reverse("monitoring:criterion", args=[key]))
    expect(lead.locator(".uplot canvas").first).to_be_visible()
    assert_fine(lead)


def test_two_keys_lead_from_a_point_to_the_message(lead: Page) -> None:
    line = lead.locator(".trend li", has_text="Polite")
    expect(line.locator(".point")).to_have_count(4)
    newest = line.locator(".point[tabindex='0']")
    newest.focus()
    expect(newest).to_have_attribute("aria-label", re.compile("23–29 Nov: 0.68"))
    lead.keyboard.press("ArrowLeft")
    lead.keyboard.press("Enter")
    expect(lead.get_by_role("heading", name="Failing chats, 16–22 Nov")).to_be_visible()
    lead.locator(".failing a").first.focus()
    lead.keyboard.press("Enter")
    expect(lead.locator("#m2:target")).to_be_visible()
    assert Chat.objects.filter(pk=lead.url.split("/")[-2], started_at__date=date(2026, 11, 16)).exists()
