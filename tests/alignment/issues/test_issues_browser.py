"""Issues in a browser: fine in every size and scheme, and from the list to the message by keyboard."""

from collections.abc import Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from alignment.models.issues import Issue
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.issues import failing_week, find_issues
from tests.factories.judged_job import judge_of
from tests.factories.rows import make_rubric

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lead(page: Page, live_server: LiveServer) -> Iterator[Page]:
    rubric, judge = make_rubric("polite"), judge_of("one")
    failing_week(0, {"tracking": 20, "voucher": 15}, judge=judge, rubric=rubric)
    failing_week(1, {"tracking": 25, "refund_days": 12}, judge=judge, rubric=rubric)
    find_issues()
    with lead_signed_in(page, live_server.url) as signed:
        signed.goto(live_server.url + reverse("issues:list"))
        yield signed


@pytest.mark.parametrize("detail", [False, True], ids=["list", "issue"])
def test_the_pages_are_fine_in_every_size_and_scheme(
    lead: Page, live_server: LiveServer, detail: bool
) -> None:
    if detail:
        pk = Issue.objects.earliest("pk").pk
        lead.goto(live_server.url + reverse("issues:detail", args=[pk]))
        expect(lead.locator(".uplot canvas").first).to_be_visible()
        expect(lead.locator("#thread")).to_be_visible()
    assert_fine(lead)


def test_two_keys_lead_from_the_list_to_the_message(lead: Page) -> None:
    lead.locator(".issues th a").first.focus()
    lead.keyboard.press("Enter")
    expect(lead.get_by_role("heading", name="Typical chats")).to_be_visible()
    lead.locator(".failing a").first.focus()
    lead.keyboard.press("Enter")
    expect(lead.locator("#m2:target")).to_be_visible()


def test_monitoring_lists_new_issues(lead: Page, live_server: LiveServer) -> None:
    lead.goto(live_server.url + reverse("monitoring:overview"))
    expect(lead.locator("#new-issues").get_by_text("new this week").first).to_be_visible()
