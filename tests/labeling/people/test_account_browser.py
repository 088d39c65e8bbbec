"""Signing in in a real browser: passkeys, codes, single sign-on; other browsers are signed out."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from labeling.models.people import Role, User
from tests.browsing import assert_fine, lead_signed_in, watch
from tests.factories.rows import make_user
from tests.factories.sign_on import own_provider, use_provider

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PASSWORD = "correct horse battery"
DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@contextmanager
def clean_console(page: Page) -> Iterator[None]:
    problems: list[str] = []
    watch(page, problems)
    yield
    assert problems == []


def sign_in(page: Page, url: str, name: str, password: str = PASSWORD) -> None:
    page.goto(f"{url}/accounts/login/")
    page.get_by_label("User name or e-mail").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def confirm(page: Page) -> None:
    """Type the password again, as each change of a factor asks."""
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def signed_in_as(page: Page, name: str) -> None:
    expect(page.locator(".account summary")).to_have_text(re.compile(name))


def sign_out(page: Page) -> None:
    page.locator(".account summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_passkey_is_added_and_then_signs_in_alone_and_as_second_step(
    page: Page, live_server: LiveServer
) -> None:
    make_user("mara", Role.RATER)
    device = page.context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    device.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
    with clean_console(page):
        sign_in(page, live_server.url, "mara")
        signed_in_as(page, "mara")
        page.goto(f"{live_server.url}/accounts/")
        page.get_by_role("link", name="Add a passkey").click()
        confirm(page)
        page.get_by_label("Name").fill("This laptop")
        page.get_by_role("button", name="Add passkey").click()
        expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
        page.get_by_role("link", name="I have stored them").click()
        page.get_by_role("link", name="Rename This laptop").click()
        page.get_by_label("Name").fill("Old laptop")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("rowheader", name="Passkey Old laptop")).to_be_visible()
        sign_out(page)
        page.get_by_role("button", name="Sign in with a passkey").click()
        signed_in_as(page, "mara")
        sign_out(page)
        sign_in(page, live_server.url, "mara")
        page.get_by_role("button", name="Use a passkey").click()
        signed_in_as(page, "mara")


def test_who_has_to_have_a_factor_sets_an_app_up_by_keyboard_and_signs_in_with_it(
    page: Page, live_server: LiveServer
) -> None:
    with lead_signed_in(page, live_server.url):
        page.goto(f"{live_server.url}/workspace/")
        page.get_by_label("Second factor required for").select_option("Leads")
        page.get_by_role("button", name="Save settings").click()
        expect(page.get_by_role("alert")).to_contain_text("requires a second factor")
        page.goto(f"{live_server.url}/people/")
        expect(page.get_by_role("heading", name="Account")).to_be_visible()
        page.get_by_role("link", name="Set up authenticator app").press("Enter")
        expect(page.get_by_label("Password", exact=True)).to_be_focused()
        page.keyboard.type(PASSWORD)
        page.keyboard.press("Enter")
        secret = page.get_by_label("Key, to type it instead").input_value()
        counter = next(iter(yield_hotp_counters_from_time()))
        page.get_by_label("Code that the app shows").focus()
        page.keyboard.type(format_hotp_value(hotp_value(secret, counter)))
        page.keyboard.press("Enter")
        code = page.get_by_role("listitem").first.inner_text()
        page.goto(f"{live_server.url}/people/")
        expect(page.get_by_role("heading", name="People")).to_be_visible()
        sign_out(page)
        sign_in(page, live_server.url, "ines")
        page.get_by_label("Code").fill(code)
        page.get_by_role("button", name="Sign in", exact=True).click()
        signed_in_as(page, "ines")


def test_single_sign_on_leads_to_the_provider_and_back(
    page: Page, live_server: LiveServer, settings: Settings
) -> None:
    make_user("root", Role.LEAD)
    with own_provider() as provider, clean_console(page):
        use_provider(settings, provider, ROLE="rater")
        page.goto(f"{live_server.url}/queue/")
        page.get_by_role("button", name="Sign in with Acme").click()
        signed_in_as(page, "Mara M.")
        expect(page).to_have_url(f"{live_server.url}/queue/")
    assert User.objects.get(username="mara").groups.get().name == Role.RATER


def test_who_tries_passwords_elsewhere_is_locked_out_and_the_owner_is_not(
    page: Page, live_server: LiveServer, browser: Browser
) -> None:
    make_user("mara", Role.RATER)
    sign_in(page, live_server.url, "mara")
    signed_in_as(page, "mara")
    sign_out(page)
    elsewhere = browser.new_context()
    stranger = elsewhere.new_page()
    for _ in range(5):
        sign_in(stranger, live_server.url, "mara", "a guess")
        expect(stranger.get_by_role("alert")).to_contain_text("is wrong")
    sign_in(stranger, live_server.url, "mara")
    expect(stranger.get_by_role("alert")).to_contain_text("Too many failed sign-ins")
    elsewhere.close()
    sign_in(page, live_server.url, "mara")
    signed_in_as(page, "mara")


def test_another_browser_is_signed_out_by_a_lead(
    page: Page, live_server: LiveServer, browser: Browser
) -> None:
    mara = make_user("mara", Role.RATER)
    other = browser.new_context()
    hers = other.new_page()
    sign_in(hers, live_server.url, "mara")
    signed_in_as(hers, "mara")
    with lead_signed_in(page, live_server.url):
        page.goto(f"{live_server.url}/people/{mara.pk}/")
        page.get_by_role("button", name=re.compile("^Sign out (?!everywhere)")).click()
        expect(page.get_by_text("Not signed in.")).to_be_visible()
    hers.reload()
    expect(hers.get_by_role("heading", name="Sign in")).to_be_visible()
    other.close()


@pytest.mark.usefixtures("each_scheme")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(page: Page, live_server: LiveServer) -> None:
    make_user("ines2", Role.LEAD)
    with clean_console(page):
        sign_in(page, live_server.url, "ines2")
        signed_in_as(page, "ines2")
        page.goto(f"{live_server.url}/accounts/")
        assert_fine(page, "account")
        page.get_by_role("link", name="Set up authenticator app").click()
        assert_fine(page, "confirm")
        confirm(page)
        assert_fine(page, "app")
        page.goto(f"{live_server.url}/workspace/log/?kind=access")
        assert_fine(page, "log")
