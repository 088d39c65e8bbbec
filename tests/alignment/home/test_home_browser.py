"""Home in a real browser: with axe in every size and scheme, and from the first step to its page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.people import Role, User
from tests.browsing import assert_fine, sign_in, watch
from tests.factories.home import as_rater, make_busy
from tests.factories.rows import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def quiet_console(page: Page) -> Iterator[None]:
    said: list[str] = []
    watch(page, said)
    yield
    assert said == []


def open_home(page: Page, context: BrowserContext, url: str, user: User) -> None:
    context.clear_cookies()
    sign_in(context, url, user)
    page.goto(f"{url}/")


def test_every_home_is_accessible_in_all_sizes(
    page: Page, context: BrowserContext, live_server: LiveServer, quiet_console: None, both_schemes: None
) -> None:
    compared = make_busy()
    rater, everyone = as_rater(compared), make_user("all", *Role)
    named = {name: User.objects.get(username=name) for name in ("ines", "otto")}
    for user, words in (
        (named["ines"], "12 tasks for you"),
        (named["otto"], "1 criterion to work on"),
        (rater, "12 chats left in November"),
        (everyone, "12 tasks for you"),
    ):
        open_home(page, context, live_server.url, user)
        expect(page.locator("h1")).to_have_text(words)
        assert_fine(page, words, every_impact=True)


def test_a_new_workspace_leads_from_step_to_step(
    page: Page, context: BrowserContext, live_server: LiveServer, quiet_console: None, both_schemes: None
) -> None:
    open_home(page, context, live_server.url, make_user("ines", Role.LEAD))
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up your workspace")
    assert_fine(page, "set-up", every_impact=True)
    page.get_by_role("button", name="Hide this list").click()
    expect(page.get_by_text("Set-up list hidden")).to_be_visible()
    page.get_by_role("link", name="Show it again").click()
    page.get_by_role("button", name="Show set-up steps").click()
    page.get_by_role("link", name="Import", exact=True).click()
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Set up your workspace")
