"""The league in a real browser: accessible and no wider than the window, light and dark, wide and narrow."""

from collections.abc import Iterator
from decimal import Decimal

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browsing import assert_fine, lead_signed_in
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.judge_comparison import called, contrary, judged, perfect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def build_compared() -> Compared:
    """Two judges of known price beside an outside one."""
    compared = make_compared()
    called(compared, judged(compared, "a judge", perfect, engine="debate"), price=Decimal("0.02"))
    called(compared, judged(compared, "another", contrary, engine="direct"), price=Decimal("0.01"))
    return compared


@pytest.fixture
def lead(page: Page, live_server: LiveServer) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


@pytest.mark.usefixtures("each_scheme")
def test_its_page_is_accessible_and_no_wider_than_the_window(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.goto(f"{live_server.url}/reports/sets/{compared.chat_set.pk}/league/")
    expect(lead.get_by_text("per additional right answer").first).to_be_visible()
    lead.get_by_text("Choose runs").click()
    assert_fine(lead, every_impact=True)


def test_its_runs_are_chosen_by_keyboard(lead: Page, live_server: LiveServer, compared: Compared) -> None:
    lead.goto(f"{live_server.url}/reports/sets/{compared.chat_set.pk}/league/")
    lead.get_by_text("Choose runs").press("Enter")
    lead.get_by_role("checkbox", name="outside judge").press("Space")
    lead.get_by_role("button", name="Compare").press("Enter")
    expect(lead.locator(".league").first.locator("tbody tr")).to_have_count(2)


def test_on_a_phone_each_pair_appears_once_with_both_judges_and_without_horizontal_scrolling(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.set_viewport_size({"width": 390, "height": 900})
    lead.goto(f"{live_server.url}/reports/sets/{compared.chat_set.pk}/league/")
    overall = lead.get_by_role("group", name="Overall: pairs of judges")
    assert overall.evaluate("box => box.scrollWidth - box.clientWidth") == 0
    assert [row.inner_text().split("\n")[0] for row in overall.locator("tbody tr:visible").all()] == [
        "another",
        "a judge",
    ]
    pairs = overall.locator("tbody td:visible")
    expect(pairs).to_have_count(3)
    expect(pairs.nth(0)).to_contain_text("against a judge (run")
    expect(pairs.nth(1)).to_contain_text("against outside judge (run")
    lead.set_viewport_size({"width": 1440, "height": 900})
    expect(pairs).to_have_count(9)
    expect(pairs.nth(1)).not_to_contain_text("against", use_inner_text=True)
