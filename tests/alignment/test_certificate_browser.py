"""A lead issues, prints and revokes a certificate in a real browser; accessibility of its pages."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.alignment.compared import Compared, make_compared
from tests.browsing import lead_signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def compared(transactional_db: None) -> Compared:
    return make_compared()


@pytest.fixture
def lead(page: Page, live_server: LiveServer, compared: Compared) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def faults(page: Page) -> list[str]:
    return [one["id"] for one in Axe().run(page).response["violations"]]


def test_a_lead_issues_prints_and_revokes_one(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.goto(f"{live_server.url}/reports/runs/{compared.run.pk}/?split=dev")
    assert faults(lead) == []
    lead.get_by_label("Valid for so many days").fill("30")
    lead.get_by_role("button", name="Issue a certificate on dev").click()
    expect(lead.get_by_role("heading", level=1)).to_contain_text("Valid")
    assert faults(lead) == []

    lead.emulate_media(media="print")
    for hidden in ("header.top", ".crumbs", ".actions", ".foot", ".revoke"):
        expect(lead.locator(hidden).first).to_be_hidden()
    expect(lead.get_by_text("Public key", exact=True)).to_be_visible()
    lead.emulate_media(media="screen", color_scheme="dark")
    assert faults(lead) == []

    lead.get_by_text("Revoke it…").click()
    lead.get_by_label("Why it must not be relied on any more").fill("The labels were wrong")
    lead.get_by_role("button", name="Revoke for good").click()
    expect(lead.get_by_role("heading", level=1)).to_contain_text("Revoked")
    expect(lead.get_by_text("The labels were wrong")).to_be_visible()
    lead.get_by_role("link", name="Certificates").click()
    expect(lead.get_by_role("row")).to_have_count(2)
    assert faults(lead) == []
