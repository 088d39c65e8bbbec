"""An author in the editor, in a real browser: the exact messages, a try by keyboard that streams in; axe."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from evaluation.models.runs import Run
from labeling.models.people import Role, User
from tests.browsing import faults, watch
from tests.factories.rating_screen import sign_in
from tests.factories.rows import make_user
from tests.factories.tries import MARK, carried_out, drafted, labelled
from tests.stub_endpoint import StubEndpoint

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# What a status line says from now on.
RECORDED = """line => {
  const said = [];
  new MutationObserver(() => said.push(line.textContent)).observe(line, { childList: true });
  return said;
}"""


@pytest.fixture
def otto(try_stub: StubEndpoint, tmp_path: Path) -> User:
    apart(labelled, tmp_path)
    user = make_user("otto", Role.AUTHOR)
    drafted(user)
    return user


@pytest.fixture
def panel(context: BrowserContext, page: Page, live_server: LiveServer, otto: User) -> Iterator[Page]:
    problems: list[str] = []
    watch(page, problems)
    sign_in(context, live_server, otto)
    page.goto(f"{live_server.url}/criteria/polite/prompt/")
    expect(page.locator("#try-form")).to_be_visible()
    yield page
    assert problems == []


def apart(do: Callable[..., Any], *args: Any) -> None:
    """What judges needs a loop of its own: the browser's runs in this thread."""

    def done() -> Any:
        try:
            return do(*args)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(done).result()


@pytest.mark.heavy
def test_the_exact_messages_unfold_by_keyboard_and_stay_so(panel: Page) -> None:
    panel.locator("#exact").scroll_into_view_if_needed()
    fold = panel.locator("#role-of-direct-0")
    fold.focus()
    panel.keyboard.press("Enter")
    expect(panel.locator("#role-direct-0 pre").first).to_contain_text(MARK)
    panel.get_by_label("Chat", exact=True).select_option(index=3)
    expect(panel.locator("#exact b").first).not_to_have_text("c-10")
    expect(panel.locator("#role-direct-0 pre").first).to_be_visible()
    assert faults(panel) == []


@pytest.mark.flow
def test_a_try_streams_in_and_is_there_after_a_reload(panel: Page) -> None:
    panel.get_by_role("radio", name="the newest").check()
    expect(panel.locator("#try-estimate")).to_contain_text("7 chats")
    panel.get_by_role("button", name="Try it").focus()
    panel.keyboard.press("Enter")
    expect(panel.locator("#try-progress")).to_contain_text("0 of 7 judged")
    expect(panel.get_by_role("button", name="Try it")).to_be_focused()
    expect(panel.locator(".tried li")).to_have_count(7)
    apart(carried_out, Run.objects.get(purpose="try"))
    expect(panel.locator("#try-progress")).to_contain_text("6 fixed, 0 broken of 7.")
    expect(panel.locator(".tried .what", has_text="Fixed")).to_have_count(6)
    expect(panel.locator(".tried .what", has_text="Still wrong")).to_have_count(1)
    first = panel.locator(".tried details").first
    first.locator("summary").focus()
    panel.keyboard.press("Enter")
    expect(first).to_contain_text("Verdict read by rule")
    assert faults(panel) == []
    panel.wait_for_load_state("networkidle")
    panel.reload()
    expect(panel.locator("#try-progress")).to_contain_text("6 fixed, 0 broken of 7.")


@pytest.mark.heavy
def test_how_a_try_goes_on_is_read_out_where_it_changes_and_not_at_every_tick(panel: Page) -> None:
    panel.get_by_role("radio", name="the newest").check()
    panel.get_by_role("button", name="Try it").click()
    line = panel.locator("#trying > [role=status]")
    expect(line).to_have_text("0 of 7 judged")
    said = panel.evaluate_handle(RECORDED, line.element_handle())
    for _ in range(2):
        with panel.expect_response("**/prompt/tries/**"):
            pass
    assert said.json_value() == []
    apart(carried_out, Run.objects.get(purpose="try"))
    expect(line).to_have_text("6 fixed, 0 broken of 7. Done.")
    assert said.json_value()[-1] == "6 fixed, 0 broken of 7. Done."
    assert len(set(said.json_value())) == len(said.json_value())
    expect(panel.locator("#tried").get_by_role("status")).to_have_count(0)


def test_a_try_that_goes_on_can_be_cancelled(panel: Page) -> None:
    panel.get_by_role("button", name="Try it").click()
    panel.get_by_role("button", name="Cancel the try").press("Enter")
    expect(panel.locator("#try-progress")).to_contain_text("Cancelled.")
    expect(panel.get_by_role("button", name="Cancel the try")).to_have_count(0)
    expect(panel.get_by_role("heading", name="Preview and try")).to_be_focused()


def test_what_the_estimate_says_follows_the_choice(panel: Page) -> None:
    expect(panel.locator("#try-estimate")).to_contain_text("1 chat,")
    panel.get_by_role("radio", name="the newest").check()
    panel.get_by_label("How many disagreements").fill("3")
    expect(panel.locator("#try-estimate")).to_contain_text("3 chats")
