"""The baselines panel in a real browser: it loads at once or when a worker is done."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from alignment.baselines.queries import baselines as selectors
from alignment.models.baselines import BaselineTraining
from alignment.tasks import train
from tests.browsing import faults
from tests.factories.compared_runs import Compared, urls

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.heavy
def test_the_report_fills_its_baselines_in_by_itself(
    signed_in: Page, live_server: LiveServer, compared: Compared
) -> None:
    signed_in.goto(f"{live_server.url}{urls(compared)['report']}?tab=all")
    table = signed_in.locator("#baselines table")
    expect(table).to_contain_text("Polite", timeout=30_000)
    expect(signed_in.locator("#baselines")).to_contain_text("Not compared with both: Welcome.")
    assert faults(signed_in) == []
    signed_in.reload()
    expect(table).to_be_visible()


@pytest.mark.heavy
def test_while_a_worker_is_on_it_the_page_says_so_and_shows_the_figures_when_they_are_there(
    signed_in: Page, live_server: LiveServer, compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "SMALL_CHATS", 0)
    signed_in.goto(f"{live_server.url}{urls(compared)['report']}?tab=all")
    expect(signed_in.locator("#baselines")).to_contain_text("Waiting for a worker.")
    assert faults(signed_in) == []
    train(BaselineTraining.objects.get().pk)
    expect(signed_in.locator("#baselines table")).to_contain_text("Polite", timeout=30_000)
