"""The editor where two tabs write, the network fails or a draft does not fit the page: no word is lost."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from evaluation.models.prompts import PromptDraft
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.prompt_pages import (
    EDIT,
    SAVED,
    TEXT,
    decided,
    draft_of_text,
    opened,
    saved,
    status,
    stored,
    write,
)
from tests.factories.rating_screen import forgive

pytestmark = [pytest.mark.browser, pytest.mark.heavy, pytest.mark.django_db(transaction=True)]


def in_two_tabs(
    editor: Page, context: BrowserContext, live_server: LiveServer, console: list[str]
) -> tuple[Page, Page]:
    """Both show the champion; the other tab has saved something since."""
    other = context.new_page()
    for tab in (editor, other):
        opened(tab, live_server)
    write(other, "Tone", "The other tab's.")
    expect(status(other)).to_have_text(SAVED)
    write(editor, "Tone", "This tab's.")
    expect(editor.locator("#conflict")).to_be_visible()
    expect(editor.locator("#conflict ins")).to_contain_text("This")
    expect(editor.locator("#conflict del")).to_contain_text("The other")
    assert "The other tab's." in stored()
    forgive(console, "409")
    return editor, other


def test_a_clash_is_shown_and_mine_can_be_kept(
    editor: Page, context: BrowserContext, live_server: LiveServer, console: list[str]
) -> None:
    mine, _ = in_two_tabs(editor, context, live_server, console)
    mine.get_by_role("button", name="Keep mine").click()
    expect(status(mine)).to_contain_text("Saved")
    expect(mine.locator("#conflict")).to_be_hidden()
    expect(mine.get_by_label("Tone", exact=True)).to_have_value("This tab's.")
    assert "This tab's." in stored()


def test_or_the_others_taken(
    editor: Page, context: BrowserContext, live_server: LiveServer, console: list[str]
) -> None:
    mine, _ = in_two_tabs(editor, context, live_server, console)
    mine.get_by_role("button", name="Take the other").click()
    expect(mine.get_by_label("Tone", exact=True)).to_have_value("The other tab's.")
    assert "The other tab's." in stored()


def test_without_a_network_it_says_so_and_goes_on_by_itself(
    editor: Page, context: BrowserContext, live_server: LiveServer, console: list[str]
) -> None:
    opened(editor, live_server)
    context.set_offline(True)
    write(editor, "Tone", "Calm.")
    expect(status(editor)).to_have_text("Not saved: offline, retrying")
    context.set_offline(False)
    expect(status(editor)).to_have_text(SAVED)
    assert "Calm." in stored()
    forgive(console, "ERR_INTERNET_DISCONNECTED")


def test_what_the_server_never_got_is_in_the_page_again_after_a_reload(
    editor: Page, context: BrowserContext, live_server: LiveServer, console: list[str]
) -> None:
    opened(editor, live_server)
    editor.route("**/api/criteria/*/draft/", lambda route: route.abort())
    editor.on("dialog", lambda dialog: dialog.accept())  # leaving with unsaved words warns
    write(editor, "Tone", "Nearly lost.")
    expect(status(editor)).to_contain_text("retrying")
    editor.unroute("**/api/criteria/*/draft/")
    editor.reload()
    expect(editor.get_by_label("Tone", exact=True)).to_have_value("Nearly lost.")
    expect(status(editor)).to_have_text(SAVED)
    assert "Nearly lost." in stored()
    forgive(console, "ERR_FAILED")


def test_what_was_just_typed_wins_over_what_the_server_never_got(
    editor: Page, live_server: LiveServer, console: list[str]
) -> None:
    held: list[Route] = []
    opened(editor, live_server)
    editor.route("**/api/criteria/*/draft/", lambda route: route.abort())
    editor.on("dialog", lambda dialog: dialog.accept())
    write(editor, "Tone", "Calm.")
    write(editor, "Audience", "Raters.")
    expect(status(editor)).to_contain_text("retrying")
    editor.unroute("**/api/criteria/*/draft/")
    editor.route("**/prompts/editor.js", lambda route: held.append(route))
    editor.goto(live_server.url + EDIT, wait_until="commit")
    write(editor, "Tone", "Cheerful.")  # before the script runs
    held.pop().continue_()
    expect(status(editor)).to_have_text(SAVED)
    assert "\n# Tone\nCheerful.\n" in stored()
    assert "\n# Audience\nRaters.\n" in stored()
    forgive(console, "ERR_FAILED")


def test_looking_at_another_version_makes_no_draft(
    editor: Page, live_server: LiveServer, prompted: Criterion
) -> None:
    decided(prompted, "t0")
    saved(prompted)
    opened(editor, live_server, "?base=2")
    expect(editor.locator("#try-estimate")).to_contain_text("1 chat,")
    editor.get_by_role("button", name="Rendered prompt").click()
    expect(editor.locator("#exact b").first).to_have_text("t0")
    editor.wait_for_load_state("networkidle")
    assert not PromptDraft.objects.exists()


def test_sections_kept_here_while_another_tab_wrote_a_text_without_them_clash_with_it(
    editor: Page,
    live_server: LiveServer,
    prompted: Criterion,
    author_user: User,
    console: list[str],
) -> None:
    opened(editor, live_server)
    editor.route("**/api/criteria/*/draft/", lambda route: route.abort())
    editor.on("dialog", lambda dialog: dialog.accept())
    write(editor, "Tone", "Nearly lost.")
    expect(status(editor)).to_contain_text("retrying")
    draft_of_text(prompted, author_user, f"Before.\n{TEXT}")
    editor.unroute("**/api/criteria/*/draft/")
    editor.reload()
    expect(editor.locator("#conflict")).to_be_visible()
    expect(editor.get_by_label("Whole prompt, Markdown")).to_have_value(re.compile("# Tone\nNearly lost."))
    assert "Nearly lost." not in stored()
    forgive(console, "ERR_FAILED")
    forgive(console, "409")


@pytest.mark.parametrize("broken", ["no answer", "an error"])
def test_a_fragment_that_fails_to_load_is_named(
    editor: Page, live_server: LiveServer, console: list[str], broken: str
) -> None:
    opened(editor, live_server)
    editor.route(
        "**/prompt/since/*",
        lambda route: route.abort() if broken == "no answer" else route.fulfill(status=500),
    )
    editor.get_by_text("Changes since version 1", exact=True).click()
    expect(status(editor)).to_have_text("The server returned an error. Try again.")
    for cause in ("ERR_FAILED", "500", "htmx:"):
        forgive(console, cause)


def test_a_text_that_is_too_long_stays_and_the_line_says_the_limit(
    editor: Page, live_server: LiveServer
) -> None:
    opened(editor, live_server, "?as=markdown")
    whole = editor.get_by_label("Whole prompt, Markdown")
    editor.get_by_text("Preview of the prompt").click()
    whole.fill("ä😀" * 50_000 + "!")
    limit = "100,001 characters; the maximum is 100,000"
    expect(status(editor)).to_have_text(f"Not saved: {limit}. Your text stays on this page")
    expect(editor.locator("#editor .seen").first).to_contain_text(f"No preview: {limit}.")
    editor.get_by_role("button", name=re.compile("Save as version 2")).click()
    expect(editor.get_by_role("dialog", name="Save version 2")).to_be_visible()
    editor.keyboard.type("Longer")
    editor.keyboard.press("Control+Enter")
    expect(editor.get_by_role("dialog", name="Save version 2")).to_be_hidden()
    expect(status(editor)).to_contain_text(limit)
    assert not PromptDraft.objects.exists()
    whole.fill(TEXT)
    expect(status(editor)).to_have_text(SAVED)
    expect(editor.locator("#editor .seen .md").first).to_be_visible()


def test_what_the_server_will_not_take_at_once_is_not_sent_again_by_itself(
    editor: Page, live_server: LiveServer, console: list[str]
) -> None:
    sent: list[str] = []

    def refuse(route: Route) -> None:
        sent.append(route.request.method)
        route.fulfill(status=413, body="<h1>413 Request Entity Too Large</h1>")

    opened(editor, live_server)
    editor.route("**/api/criteria/*/draft/", refuse)
    write(editor, "Tone", "Calm.")
    expect(status(editor)).to_have_text(
        "Not saved: More than the server takes at once. Your text stays on this page"
    )
    editor.wait_for_timeout(1500)
    assert sent == ["PUT"]
    expect(editor.get_by_label("Tone", exact=True)).to_have_value("Calm.")
    editor.unroute("**/api/criteria/*/draft/")
    write(editor, "Tone", "Calmer.")
    expect(status(editor)).to_have_text(SAVED)
    forgive(console, "413")
