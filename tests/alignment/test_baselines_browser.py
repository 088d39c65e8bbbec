"""The report's baselines in a real browser: they fill themselves in, at once or when a worker is done."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from alignment.models.baselines import BaselineTraining
from alignment.selectors import baselines as selectors
from alignment.tasks import train
from tests.alignment.compared import Compared, make_compared, urls
from tests.browsing import lead_signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def compared(transactional_db: None) -> Compared:
    return make_compared()


@pytest.fixture
def lead(page: Page, live_server: LiveServer, compared: Compared) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [one["id"] for one in found if one["impact"] in ("serious", "critical")]


def test_the_report_fills_its_baselines_in_by_itself(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.goto(live_server.url + urls(compared)["report"])
    table = lead.locator("#baselines table")
    expect(table).to_contain_text("Polite", timeout=30_000)
    expect(lead.locator("#baselines")).to_contain_text("Not compared with both: Welcome.")
    assert serious(lead) == []
    lead.reload()
    expect(table).to_be_visible()


def test_while_a_worker_is_on_it_the_page_says_so_and_shows_the_figures_when_they_are_there(
    lead: Page, live_server: LiveServer, compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "SMALL_CHATS", 0)
    lead.goto(live_server.url + urls(compared)["report"])
    expect(lead.locator("#baselines")).to_contain_text("Waiting for a worker.")
    assert serious(lead) == []
    train(BaselineTraining.objects.get().pk)
    expect(lead.locator("#baselines table")).to_contain_text("Polite", timeout=30_000)
