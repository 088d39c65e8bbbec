"""A stored report in a real browser: on a screen, and on A4."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.alignment.compared import Compared, make_compared
from tests.browsing import lead_signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

A4 = {"width": 688, "height": 990}  # px between margins of 14 mm


@pytest.fixture
def compared(transactional_db: None) -> Compared:
    return make_compared()


@pytest.fixture
def lead(page: Page, live_server: LiveServer, compared: Compared) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def faults(page: Page) -> list[str]:
    return [one["id"] for one in Axe().run(page).response["violations"]]


def overflow(page: Page) -> int:
    wide: int = page.evaluate(
        "Math.max(...[...document.querySelectorAll('main, main *')].map((one) =>"
        " Math.ceil(one.getBoundingClientRect().right))) - innerWidth"
    )
    return wide


def test_a_lead_opens_the_link_to_the_numbers_and_prints_them(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.goto(f"{live_server.url}/reports/runs/{compared.run.pk}/")
    lead.get_by_role("link", name="Link to these numbers, print").click()
    expect(lead.get_by_role("heading", level=1)).to_contain_text("Alignment report of")
    assert faults(lead) == []
    lead.emulate_media(color_scheme="dark")
    assert faults(lead) == []
    lead.emulate_media(media="print", color_scheme="light")
    for size in (A4, {"width": 390, "height": 844}):
        lead.set_viewport_size(size)  # type: ignore[arg-type]
        for hidden in ("header.top", ".crumbs", ".actions", ".foot"):
            expect(lead.locator(hidden).first).to_be_hidden()
    lead.set_viewport_size(A4)  # type: ignore[arg-type]
    assert overflow(lead) <= 0
    foot = lead.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--foot')")
    assert "pin" in foot and "computed" in foot
    sheets = lead.pdf(format="A4", prefer_css_page_size=True)
    assert sheets.startswith(b"%PDF") and sheets.count(b"/Type /Page\n") >= 2
