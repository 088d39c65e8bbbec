"""The chats behind a paired table in a real browser: by keyboard, on small screens, for axe."""

from collections.abc import Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browsing import assert_fine, lead_signed_in, press
from tests.factories.compared_runs import JUDGE, make_compared
from tests.factories.regression_tests import DecidedTest, candidate_says, make_tested

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def tested(transactional_db: None) -> DecidedTest:
    return make_tested(
        make_compared(), confirm=lambda n: candidate_says(n) is not (n == 7), noise=JUDGE["polite"]
    )


@pytest.fixture
def lead(page: Page, live_server: LiveServer, tested: DecidedTest) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def test_by_keyboard_from_the_list_through_the_chats_of_a_cell_and_back(
    lead: Page, live_server: LiveServer, tested: DecidedTest
) -> None:
    first, second, third, *_ = tested.of("fixed")
    lead.goto(live_server.url + tested.cell_url("fixed"))
    for key in ("j", "j", "k", "j"):
        lead.keyboard.press(key)
    expect(lead.locator(".disc .meta a").nth(1)).to_be_focused()
    lead.keyboard.press("Enter")
    facts = lead.locator(".facts")
    expect(facts).to_contain_text(f"chat-{second}")
    press(lead, "j")
    expect(facts).to_contain_text(f"chat-{third}")
    press(lead, "ArrowLeft")
    expect(facts).to_contain_text(f"chat-{second}")
    press(lead, "k")
    expect(facts).to_contain_text(f"chat-{first}")
    press(lead, "k")  # there is none before
    expect(facts).to_contain_text(f"chat-{first}")
    lead.locator(".crumbs").get_by_role("link", name="Fixed").click()
    expect(lead.get_by_role("heading", level=1)).to_have_text("Fixed")


def test_keys_that_are_typed_into_the_search_stay_there(
    lead: Page, live_server: LiveServer, tested: DecidedTest
) -> None:
    lead.goto(live_server.url + tested.cell_url("fixed"))
    search = lead.get_by_label("Chat id")
    search.focus()
    lead.keyboard.type("jk")
    expect(search).to_have_value("jk")
    expect(search).to_be_focused()
    search.fill("chat-1")
    lead.keyboard.press("Enter")
    expect(lead.locator("article.disc")).to_have_count(2)


def test_a_quote_of_either_judge_leads_to_its_turn(
    lead: Page, live_server: LiveServer, tested: DecidedTest
) -> None:
    lead.goto(live_server.url + tested.chat_url(7))
    for side in range(2):
        lead.goto(live_server.url + tested.chat_url(7))
        lead.locator(".arg.judge").nth(side).locator(".md a").first.click()
        assert lead.url.endswith("#m2")
        expect(lead.locator("#m2")).to_be_in_viewport()


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(
    lead: Page, live_server: LiveServer, tested: DecidedTest
) -> None:
    paths = {
        "cell": tested.cell_url("broken"),
        "empty": tested.cell_url("broken", "?q=none"),
        "chat": tested.chat_url(7, "?cell=broken"),
        "failed": tested.chat_url(3),
        "test": reverse("alignment:regression_detail", args=[tested.test.pk]),
    }
    for name, path in paths.items():
        lead.goto(live_server.url + path)
        assert_fine(lead, name, sizes=[(1440, 900), (1000, 800), (390, 844)])
