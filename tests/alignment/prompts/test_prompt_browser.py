"""The prompt editor in a real browser: it saves by itself, notices another tab, makes versions."""

import re

import pytest
from playwright.sync_api import Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from evaluation.models.prompts import PromptDraft, PromptVersion
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.browsing import assert_fine
from tests.factories.prompt_pages import (
    EDIT,
    SAVED,
    TEXT,
    champion_of,
    decided,
    draft_of_text,
    line,
    opened,
    saved,
    status,
    stored,
    write,
)
from tests.factories.rating_screen import forgive

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_what_is_written_saves_itself_and_is_there_after_a_reload(
    editor: Page, live_server: LiveServer, prompted: Criterion
) -> None:
    opened(editor, live_server)
    expect(status(editor)).to_have_text("No changes")
    write(editor, "Tone", "Calm, and be strict.")
    expect(status(editor)).to_have_text(SAVED)
    assert stored() == champion_of(prompted).text.replace(
        "Impartial towards bot and customer, neither lenient nor harsh.", "Calm, and be strict."
    )
    expect(editor.locator("#findings")).to_contain_text("“be strict”")
    editor.locator("#findings").get_by_role("link", name="Tone").click()
    expect(editor.get_by_label("Tone", exact=True)).to_be_focused()
    editor.reload()
    expect(editor.get_by_label("Tone", exact=True)).to_have_value("Calm, and be strict.")


def test_what_is_typed_before_the_script_arrives_is_saved_too(editor: Page, live_server: LiveServer) -> None:
    held: list[Route] = []
    editor.route("**/prompts/editor.js", lambda route: held.append(route))
    editor.goto(live_server.url + EDIT, wait_until="commit")
    write(editor, "Tone", "Calm.")
    expect(status(editor)).to_have_text("No changes")
    held.pop().continue_()
    expect(status(editor)).to_have_text(SAVED)
    assert "\n# Tone\nCalm.\n" in stored()
    expect(editor.locator("[data-tab=tone]")).to_contain_class("chg")


def test_sections_and_the_whole_text_are_two_views_of_one_draft(
    editor: Page, live_server: LiveServer
) -> None:
    opened(editor, live_server)
    write(editor, "Tone", "Calm.")
    editor.get_by_role("link", name="Whole Markdown").click()
    whole = editor.get_by_label("Whole prompt, Markdown")
    expect(whole).to_have_value(re.compile(r"# Tone\nCalm\.\n"))
    whole.fill(f"Before.\n{TEXT}")
    expect(status(editor)).to_have_text(SAVED)
    editor.goto(live_server.url + EDIT)
    expect(whole).to_have_value(f"Before.\n{TEXT}")
    expect(editor.get_by_label("Tone", exact=True)).to_have_count(0)


def test_the_lint_is_read_out_where_it_changes(editor: Page, live_server: LiveServer) -> None:
    opened(editor, live_server)
    line = editor.locator("#findings > [role=status]")
    expect(line).to_be_empty()
    write(editor, "Tone", "Calm, and be strict.")
    expect(line).to_have_text("No errors. You can save.")
    write(editor, "Objective", "")
    expect(line).to_have_text(re.compile("^2? ?.*to save a version"))
    expect(editor.locator("#findings").get_by_role("status")).to_have_count(1)


def test_a_preview_follows_the_typing(editor: Page, live_server: LiveServer) -> None:
    opened(editor, live_server)
    editor.get_by_text("Preview of Tone").click()
    pane = editor.locator(".pane", has=editor.get_by_label("Tone", exact=True))
    expect(pane.locator(".md")).to_contain_text("Impartial")
    write(editor, "Tone", "**Calm** <img src=x onerror=alert(1)>")
    expect(pane.locator("strong")).to_have_text("Calm")
    expect(pane.locator(".md")).to_contain_text("<img src=x onerror=alert(1)>")


def test_what_changed_since_the_version_unfolds_and_follows_the_saves(
    editor: Page, live_server: LiveServer
) -> None:
    opened(editor, live_server)
    since = editor.locator("#since")
    since.get_by_text("Changes since version 1").click()
    expect(since).to_contain_text("The texts are identical.")
    write(editor, "Tone", "Calm.")
    expect(since.locator("h3")).to_have_text("Tone")
    expect(since.locator("ins")).to_contain_text("Calm")


def test_a_section_that_cannot_be_kept_says_why_and_is_kept_once_it_can(
    editor: Page, live_server: LiveServer, console: list[str]
) -> None:
    opened(editor, live_server)
    write(editor, "Context", "A shop.\n# Tone\nCalm.")
    wrong = editor.locator("#wrong-context")
    expect(wrong).to_have_text("“# Tone” starts another section")
    expect(editor.get_by_label("Context", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(status(editor)).to_contain_text("Not saved:")
    assert not PromptDraft.objects.exists()
    write(editor, "Context", "A shop.")
    expect(status(editor)).to_have_text(SAVED)
    expect(wrong).to_be_hidden()
    expect(editor.get_by_label("Context", exact=True)).not_to_have_attribute("aria-invalid", "true")
    forgive(console, "400")


# ---------- examples ----------


def test_back_from_a_chat_the_list_is_where_one_left_it(
    editor: Page, live_server: LiveServer, prompted: Criterion
) -> None:
    for n in range(22):
        decided(prompted, f"t{n:02}", value=n > 0)
    opened(editor, live_server)
    editor.get_by_role("button", name="Add an example…").press("Enter")
    picker = editor.get_by_role("dialog", name="Add a worked example")
    picker.get_by_label("Consensus").select_option("True")
    expect(picker).to_contain_text("21 train chats")
    picker.get_by_role("button", name="Next").press("Enter")
    expect(picker).to_contain_text("Page 2 of 2")
    chat = picker.locator(".picks button")
    chat.press("Enter")
    expect(picker.locator("h3")).to_be_focused()
    expect(chat).to_be_hidden()
    picker.get_by_role("button", name="Back to the list").press("Enter")
    expect(chat).to_be_focused()
    expect(picker).to_contain_text("Page 2 of 2")
    expect(picker.get_by_label("Consensus")).to_have_value("true")


def test_an_example_is_picked_with_its_consensus(
    editor: Page, live_server: LiveServer, prompted: Criterion
) -> None:
    decided(prompted, "t0", value=False)
    decided(prompted, "t1")
    opened(editor, live_server)
    write(editor, "Tone", "Calm.")
    editor.get_by_role("button", name="Add an example…").click()
    picker = editor.get_by_role("dialog", name="Add a worked example")
    picker.get_by_label("Id or text").fill("t0 is told")
    expect(picker.get_by_role("button", name=re.compile("t1"))).to_have_count(0)
    picker.get_by_role("button", name=re.compile("t0")).click()
    expect(picker.get_by_label("False", exact=True)).to_be_checked()
    picker.get_by_label("Last turn").fill("2")
    expect(picker.locator("li.in")).to_have_count(2)
    picker.get_by_label("Why").fill(" ")
    picker.get_by_role("button", name="Add this example").press("Enter")
    expect(picker).to_contain_text("must not be blank")
    expect(picker.get_by_label("Why")).to_be_focused()
    picker.get_by_label("Last turn").fill("2")
    picker.get_by_role("button", name="Use this reason").last.click()
    why = picker.get_by_label("Why").input_value()
    picker.get_by_role("button", name="Add this example").click()
    expect(picker).to_be_hidden()
    expect(editor.locator("#chosen")).to_contain_text("turns 1–2")
    draft = PromptDraft.objects.get()
    assert draft.examples == [line("t0", value=False, rationale=why)]
    assert "Calm." in draft.text
    editor.get_by_role("button", name="Remove example 1").click()
    expect(editor.locator("#chosen")).to_contain_text("None.")
    write(editor, "Tone", "Calmer.")
    expect(status(editor)).to_have_text(SAVED)


def test_an_example_of_the_draft_can_be_edited(
    editor: Page, live_server: LiveServer, prompted: Criterion, author_user: User
) -> None:
    draft_of_text(prompted, author_user, examples=[line(decided(prompted, "t0"))])
    opened(editor, live_server)
    editor.get_by_role("button", name="Edit example 1").press("Enter")
    dialog = editor.get_by_role("dialog", name="Edit a worked example")
    expect(dialog.get_by_label("Why")).to_have_value("It thanks.")
    dialog.get_by_role("button", name="Use this reason").first.click()
    why = dialog.get_by_label("Why").input_value()
    dialog.get_by_label("Why").fill(f"{why}, twice")
    dialog.get_by_role("button", name="Save this example").click()
    expect(dialog).to_be_hidden()
    expect(editor.locator("#chosen")).to_contain_text(f"{why}, twice")
    assert PromptDraft.objects.get().examples == [line("t0", rationale=f"{why}, twice")]


def test_the_keyboard_keeps_its_place_in_the_examples(
    editor: Page, live_server: LiveServer, prompted: Criterion, author_user: User
) -> None:
    chats = [decided(prompted, name) for name in ("t0", "t1", "t2")]
    draft_of_text(prompted, author_user, examples=[line(chat) for chat in chats])
    opened(editor, live_server)
    for left in (2, 1):
        editor.get_by_role("button", name="Remove example 1").press("Enter")
        expect(editor.locator("ol.examples > li")).to_have_count(left)
        expect(editor.get_by_role("button", name="Remove example 1")).to_be_focused()
    editor.keyboard.press("Enter")
    add = editor.get_by_role("button", name="Add an example…")
    expect(add).to_be_focused()
    editor.keyboard.press("Enter")
    picker = editor.get_by_role("dialog", name="Add a worked example")
    expect(picker.get_by_label("Consensus")).to_be_focused()
    picker.get_by_role("button", name=re.compile("t1")).press("Enter")
    expect(picker.get_by_role("heading", name=re.compile("t1"))).to_be_focused()


AT_ONCE = """
  const key = () => setTimeout(() => document.activeElement.click());
  document.querySelector("#chosen").addEventListener("htmx:afterSwap", key, { once: true });
"""


def test_a_key_pressed_as_soon_as_a_new_button_appears_is_handled(
    editor: Page, live_server: LiveServer, prompted: Criterion, author_user: User
) -> None:
    chats = [decided(prompted, name) for name in ("t0", "t1", "t2")]
    draft_of_text(prompted, author_user, examples=[line(chat) for chat in chats])
    opened(editor, live_server)
    editor.evaluate(AT_ONCE)
    editor.get_by_role("button", name="Remove example 1").press("Enter")
    expect(editor.locator("ol.examples > li")).to_have_count(1)


# ---------- versions and keys ----------


def test_a_version_is_saved_by_keyboard_alone(
    editor: Page, live_server: LiveServer, prompted: Criterion, author_user: User, console: list[str]
) -> None:
    opened(editor, live_server)
    editor.get_by_label("Tone", exact=True).focus()
    editor.keyboard.press("Control+a")
    editor.keyboard.type("Calm? Yes, s.")  # keys inside a field are letters
    expect(editor.locator("dialog[open]")).to_have_count(0)
    editor.keyboard.press("Control+s")
    expect(status(editor)).to_have_text(SAVED)
    editor.keyboard.type(" More.")
    editor.keyboard.press("Control+Enter")
    expect(editor.get_by_role("dialog", name="Save version 2")).to_be_visible()
    editor.keyboard.type("Calmer tone")
    editor.keyboard.press("Control+Enter")
    editor.wait_for_url("**/criteria/polite/versions/2/")
    version = PromptVersion.objects.get(criterion=prompted, number=2)
    assert (version.reason, version.author) == ("Calmer tone", author_user)
    assert "Calm? Yes, s. More." in version.text
    assert not PromptDraft.objects.exists()
    forgive(console, "404")


def test_a_double_press_saves_one_version(editor: Page, live_server: LiveServer) -> None:
    opened(editor, live_server)
    write(editor, "Tone", "Calm.")
    editor.get_by_role("button", name=re.compile("Save as version 2")).click()
    dialog = editor.get_by_role("dialog", name="Save version 2")
    dialog.get_by_label("Reason for the change").fill("Calmer")
    with editor.expect_request(lambda request: request.url.endswith(EDIT) and request.method == "POST"):
        editor.keyboard.press("Control+Enter")
    editor.keyboard.press("Control+Enter")
    editor.wait_for_url("**/criteria/polite/versions/2/")
    expect(editor.get_by_role("status").first).to_contain_text("Version 2 is saved, not released.")


def test_errors_open_the_dialog_again_with_their_names(editor: Page, live_server: LiveServer) -> None:
    opened(editor, live_server)
    write(editor, "Objective", "")
    editor.get_by_role("button", name=re.compile("Save as version 2")).click()
    dialog = editor.get_by_role("dialog", name="Save version 2")
    dialog.get_by_label("Reason for the change").fill("Shorter")
    dialog.get_by_role("button", name="Save version 2").click()
    expect(dialog.get_by_role("alert")).to_contain_text("# Objective: is missing or empty")
    dialog.get_by_role("button", name="Cancel").click()
    editor.locator("h1").click()
    editor.keyboard.press("?")
    expect(editor.get_by_role("dialog", name="Keys")).to_be_visible()


def test_the_draft_can_be_discarded(
    editor: Page, live_server: LiveServer, prompted: Criterion, author_user: User
) -> None:
    draft_of_text(prompted, author_user)
    opened(editor, live_server)
    editor.get_by_role("button", name="Discard…").click()
    editor.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(editor.get_by_role("status").first).to_contain_text("The draft was discarded")
    assert not PromptDraft.objects.exists()


def test_words_that_only_this_browser_has_go_with_the_discarded_draft(
    editor: Page, live_server: LiveServer, prompted: Criterion, author_user: User, console: list[str]
) -> None:
    draft_of_text(prompted, author_user)
    opened(editor, live_server)
    editor.on("dialog", lambda dialog: dialog.accept())
    editor.route("**/api/criteria/*/draft/", lambda route: route.abort())
    write(editor, "Tone", "Not wanted.")
    expect(status(editor)).to_contain_text("retrying")
    editor.get_by_role("button", name="Discard…").click()
    editor.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(editor.get_by_role("status").first).to_contain_text("The draft was discarded")
    editor.wait_for_load_state("networkidle")
    expect(status(editor)).to_have_text("No changes")
    expect(editor.get_by_label("Tone", exact=True)).to_have_value(re.compile("Impartial"))
    forgive(console, "ERR_FAILED")


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(
    editor: Page,
    live_server: LiveServer,
    prompted: Criterion,
    author_user: User,
) -> None:
    chat = decided(prompted, "t0")
    draft_of_text(prompted, author_user, f"{TEXT}Be strict.", examples=[line(chat)])
    saved(prompted)
    decided(prompted, "t1", value=False)

    for query in ("", "?as=markdown", "?base=2"):
        opened(editor, live_server, query)
        assert_fine(editor)
    editor.keyboard.press("Control+Enter")
    assert_fine(editor)
    editor.keyboard.press("Escape")
    editor.get_by_role("button", name="Add an example…").click()
    editor.locator(".picks").get_by_role("button", name=re.compile("t1")).wait_for()
    assert_fine(editor)
    editor.locator(".picks").get_by_role("button", name=re.compile("t1")).click()
    editor.get_by_role("button", name="Add this example").wait_for()
    assert_fine(editor)
