"""The page of API tokens in a real browser: made by keyboard, used, revoked; axe and CSP."""

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browsing import assert_fine, lead_signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def made(page: Page) -> str:
    """Make a token by keyboard alone; the token itself."""
    page.get_by_label("Name").focus()
    page.keyboard.type("Nightly export to the warehouse")
    page.keyboard.press("Tab")
    page.keyboard.type("a week")
    page.get_by_label("See runs, verdicts and alignment").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Create token").focus()
    page.keyboard.press("Enter")
    field = page.get_by_label("copy the token now")
    expect(field).to_be_visible()
    return field.input_value()


def test_a_token_is_made_by_keyboard_used_and_revoked(page: Page, live_server: LiveServer) -> None:
    with lead_signed_in(page, live_server.url):
        page.goto(live_server.url)
        page.locator(".account summary").click()
        page.get_by_role("link", name="API tokens").click()
        secret = made(page)
        headers = {"Authorization": f"Token {secret}"}
        assert Client().get(reverse("api_runs"), headers=headers).status_code == 200
        page.goto(live_server.url + reverse("labeling:token_list"))
        expect(page.get_by_text(secret)).to_have_count(0)
        page.get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("status")).to_contain_text("revoked")
        assert Client().get(reverse("api_runs"), headers=headers).status_code == 401


@pytest.mark.usefixtures("each_scheme")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(page: Page, live_server: LiveServer) -> None:
    with lead_signed_in(page, live_server.url):
        page.goto(live_server.url + reverse("labeling:token_list"))
        made(page)
        assert_fine(page)
