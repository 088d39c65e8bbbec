"""A stored report in a real browser: on a screen, and on A4."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browsing import faults
from tests.factories.compared_runs import Compared

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

A4 = {"width": 688, "height": 990}  # px between margins of 14 mm


def overflow(page: Page) -> int:
    wide: int = page.evaluate(
        "Math.max(...[...document.querySelectorAll('main, main *')].map((one) =>"
        " Math.ceil(one.getBoundingClientRect().right))) - innerWidth"
    )
    return wide


@pytest.mark.heavy
def test_a_lead_opens_the_link_to_the_numbers_and_prints_them(
    signed_in: Page, live_server: LiveServer, compared: Compared
) -> None:
    signed_in.goto(f"{live_server.url}/reports/runs/{compared.run.pk}/")
    signed_in.locator("summary").get_by_text("Export", exact=True).click()
    signed_in.get_by_role("button", name="Share").click()
    expect(signed_in.get_by_role("heading", level=1)).to_contain_text("Alignment report of")
    assert faults(signed_in) == []
    signed_in.emulate_media(color_scheme="dark")
    assert faults(signed_in) == []
    signed_in.emulate_media(media="print", color_scheme="light")
    for size in (A4, {"width": 390, "height": 844}):
        signed_in.set_viewport_size(size)  # type: ignore[arg-type]
        for hidden in ("header.top", ".crumbs", ".actions", ".foot"):
            expect(signed_in.locator(hidden).first).to_be_hidden()
    signed_in.set_viewport_size(A4)  # type: ignore[arg-type]
    assert overflow(signed_in) <= 0
    foot = signed_in.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--foot')")
    assert "pin" in foot and "computed" in foot
    sheets = signed_in.pdf(format="A4", prefer_css_page_size=True)
    assert sheets.startswith(b"%PDF") and sheets.count(b"/Type /Page\n") >= 2
