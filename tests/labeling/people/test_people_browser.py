"""People in a real browser: from an invitation to the new account, and the account menu by keyboard."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.people import Role, User
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.rows import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PASSWORD = "a long own password"


def test_an_invited_rater_joins_and_lands_in_the_queue(
    page: Page, live_server: LiveServer, browser: Browser
) -> None:
    with lead_signed_in(page, live_server.url):
        page.goto(f"{live_server.url}/people/")
        page.get_by_label("Name (optional)").fill("Nora L")
        page.get_by_role("button", name="Create link").click()
        link = page.get_by_label("Copy the link now").input_value()
        page.goto(f"{live_server.url}/people/")
        # The form's draft ended with the link, and the link is gone.
        expect(page.get_by_label("Name (optional)")).to_have_value("")
        expect(page.get_by_label("Copy the link now")).to_have_count(0)
    other = browser.new_context()
    nora = other.new_page()
    nora.goto(link)
    nora.get_by_label("User name").fill("nora")
    for field in ("Password", "Password again"):
        nora.get_by_label(field, exact=True).fill(PASSWORD)
    nora.get_by_role("button", name="Create account").click()
    expect(nora.locator(".account summary")).to_have_text(re.compile("Nora L"))
    other.close()
    assert User.objects.get(username="nora").groups.get().name == Role.RATER


def test_the_account_menu_opens_and_closes_by_keyboard(page: Page, live_server: LiveServer) -> None:
    with lead_signed_in(page, live_server.url):
        page.goto(f"{live_server.url}/tokens/")
        menu = page.locator(".account summary")
        menu.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="People")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("link", name="People")).to_be_hidden()
        expect(menu).to_be_focused()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.mark.usefixtures("each_scheme")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(page: Page, live_server: LiveServer) -> None:
    for name in ("a-rater-with-a-rather-long-user-name", "otto"):
        make_user(name, Role.RATER)
    with lead_signed_in(page, live_server.url):
        page.goto(f"{live_server.url}/people/")
        page.get_by_role("button", name="Create link").click()
        page.locator(".account summary").click()
        assert_fine(page)
        page.goto(f"{live_server.url}/people/new/")
        assert_fine(page)
