"""From a number of the report to a message of the chat, triaged there and refined; several at once."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from alignment.misalignments.worker import misalignments_refresh
from alignment.models.misalignments import Misalignment
from labeling.models.chats import ChatSetMember
from labeling.models.people import Role
from tests.browsing import assert_fine, press, watch
from tests.factories.compared_runs import Compared, cell_url, chat_url
from tests.factories.prompt_versions import a_version, promote
from tests.factories.rater_quality import polite
from tests.factories.rating_screen import sign_in
from tests.factories.rows import make_user
from tests.factories.triage import LIST, item_on

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def console() -> list[str]:
    return []


@pytest.fixture
def browser_of_lead(
    page: Page, context: BrowserContext, live_server: LiveServer, compared: Compared, console: list[str]
) -> Iterator[Page]:
    """The lead's browser, on no page yet; afterwards the console must be clean."""
    misalignments_refresh(compared.run)
    promote(a_version(polite()))
    watch(page, console)
    sign_in(context, live_server, make_user("ines", Role.LEAD))
    yield page
    assert console == []


def saved(page: Page, words: str) -> None:
    expect(page.locator("#saving")).to_have_text(words)


def test_from_a_number_to_the_message_in_three_clicks_and_triaged_there_by_one_key(
    browser_of_lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    page, counts = browser_of_lead, browser_of_lead.locator("#triage-counts")
    page.goto(f"{live_server.url}/reports/runs/{compared.run.pk}/")
    page.get_by_role("link", name=re.compile("disagreements?, polite", re.IGNORECASE)).click()
    expect(page.locator(".disc").first).to_be_visible()
    listed = page.url
    page.locator(".disc .meta a").first.click()
    page.locator(".sides a.t").first.click()
    expect(page.locator(".turn:target")).to_be_in_viewport()
    press(page, "1")
    saved(page, "Saved: Judge wrong")
    expect(counts).to_have_text(re.compile(r"^\s*1 of 8\s+triaged:\s+judge wrong 1\s*$"))
    expect(page.locator("#history")).to_contain_text("Cause: none yet → Judge wrong")
    assert item_on(5).cause == "judge"
    page.keyboard.press("g")
    expect(page.locator("#bench h3").first).to_have_text("Pinned, 1")
    page.get_by_role("link", name="← Back to the chat").click()
    expect(page.locator(".causes [aria-pressed=true]")).to_have_text("Judge wrong 1")
    page.get_by_role("link", name="← Back to the list of chats").click()
    expect(page).to_have_url(listed)


def test_back_from_a_turn_that_was_followed_leads_to_the_list_at_once(
    browser_of_lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    page, cell = browser_of_lead, live_server.url + cell_url(compared, "polite", "fn")
    page.goto(cell)
    page.locator(".disc .meta a").first.click()
    page.locator(".sides a.t").first.click()
    expect(page.locator(".turn:target")).to_be_in_viewport()
    page.get_by_role("link", name="← Back to the list of chats").click()
    expect(page).to_have_url(cell)


def test_the_keys_lead_to_the_neighbours_once_everything_is_saved(
    browser_of_lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    page = browser_of_lead
    page.goto(live_server.url + chat_url(compared, 5))
    page.keyboard.press("p")
    saved(page, "First disagreement")
    page.keyboard.press("2")
    page.keyboard.press("c")
    page.keyboard.type("n p 1")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile(f"/chats/{compared.chat(10).pk}/"))
    row = item_on(5)
    assert (row.cause, row.note) == ("label", "n p 1")
    press(page, "u")
    saved(page, "Undone on chat-5, polite: note “n p 1” → none")
    page.keyboard.press("k")
    expect(page).to_have_url(re.compile(f"/chats/{compared.chat(5).pk}/"))
    expect(page.locator(".causes [aria-pressed=true]")).to_have_text("Label wrong 2")


def test_an_owner_whose_choice_was_undone_does_not_come_back(
    browser_of_lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    page, owner = browser_of_lead, browser_of_lead.locator("[data-owner-choice]")
    make_user("otto", Role.AUTHOR)
    page.goto(live_server.url + chat_url(compared, 5))
    owner.select_option("otto")
    saved(page, "Saved: owner otto")
    page.wait_for_timeout(1000)  # longer than a draft waits
    page.get_by_role("button", name="Undo", exact=True).click()
    saved(page, "Undone on chat-5, polite: owner otto → unassigned")
    page.reload()
    page.wait_for_load_state("networkidle")
    expect(owner).to_have_value("")
    expect(page.locator("main")).not_to_contain_text("Draft")
    assert item_on(5).owner is None


def test_an_unsaved_change_keeps_the_reader_on_the_page(
    browser_of_lead: Page, live_server: LiveServer, compared: Compared, console: list[str]
) -> None:
    page = browser_of_lead
    page.goto(live_server.url + chat_url(compared, 5))
    page.route("**/api/misalignments/**", lambda route: route.abort())
    page.keyboard.press("4")
    expect(page.locator("#trouble")).to_contain_text("Your change is kept on this page and sent again")
    page.keyboard.press("n")
    expect(page.locator("#saving")).to_have_text("Not saved yet: stay on this page until it is")
    page.unroute("**/api/misalignments/**")
    saved(page, "Saved: Knowledge missing")
    expect(page).to_have_url(re.compile(f"/chats/{compared.chat(5).pk}/"))
    assert item_on(5).cause == "knowledge"
    page.evaluate("null")  # lets the browser's messages arrive
    console.clear()  # it tells of the request that was cut


def test_several_disagreements_are_marked_assigned_and_undone_at_once(
    browser_of_lead: Page, live_server: LiveServer
) -> None:
    page = browser_of_lead
    make_user("otto", Role.AUTHOR)
    page.goto(f"{live_server.url}{LIST}?criterion=polite")
    boxes = page.get_by_role("checkbox", name=re.compile("^Select "))
    boxes.nth(1).check()
    page.keyboard.press("x")  # the open one
    expect(page.locator("[data-count]")).to_have_text("2 selected")
    bar = page.get_by_role("group", name="Selected disagreements")
    bar.get_by_label("Mark a cause").select_option("Knowledge missing")
    saved(page, "Saved: Knowledge missing on 2 disagreements")
    expect(page.locator("#count")).to_contain_text("2 of 8 triaged")
    page.get_by_role("button", name="Undo", exact=True).click()
    saved(page, "Undone on 2 disagreements")
    assert not Misalignment.objects.exclude(cause="").exists()
    page.get_by_label("All on this page").check()
    bar.get_by_label("Assign to").select_option("ines (you)")
    saved(page, "Saved: owner ines on 8 disagreements")
    assert Misalignment.objects.filter(owner__username="ines").count() == 8


def test_a_conflict_in_a_bulk_change_is_told_and_the_others_are_saved(
    browser_of_lead: Page, live_server: LiveServer, console: list[str]
) -> None:
    page = browser_of_lead
    page.goto(f"{live_server.url}{LIST}?criterion=polite")
    otto = make_user("otto", Role.AUTHOR)
    Misalignment.objects.filter(pk=item_on(5).pk).update(cause="label", revision=1, changed_by=otto)
    page.get_by_label("All on this page").check()
    page.get_by_label("Mark a cause").select_option("Judge wrong")
    saved(page, "Saved: Judge wrong on 7 disagreements")
    expect(page.locator("#trouble")).to_contain_text("Not saved on 1 disagreement: otto changed this")
    assert item_on(5).cause == "label"
    console.clear()  # the browser tells of the 409


def test_selected_chats_go_to_a_set_and_beside_the_prompt(
    browser_of_lead: Page, live_server: LiveServer, console: list[str]
) -> None:
    page = browser_of_lead
    page.goto(f"{live_server.url}{LIST}?criterion=polite")
    boxes = page.get_by_role("checkbox", name=re.compile("^Select "))
    for n in (0, 1, 2):
        boxes.nth(n).check()
    page.get_by_role("button", name="Add to chat set…").click()
    dialog = page.get_by_role("dialog", name="Add the selected chats to a set")
    dialog.get_by_label("Name of the new set").fill("calibration")
    dialog.get_by_role("button", name="Add to the set").click()
    expect(dialog.get_by_role("alert")).to_contain_text("There is a set")
    assert len(console) == 1 and "400" in console.pop()
    dialog.get_by_label("Name of the new set").fill("Hard chats")
    dialog.get_by_role("button", name="Add to the set").click()
    saved(page, "Added 3 chats to Hard chats")
    assert ChatSetMember.objects.filter(chat_set__name="Hard chats", split="dev").count() == 3
    page.get_by_role("button", name="Refine the prompt").click()
    expect(page.locator("#bench h3").first).to_have_text("Pinned, 3")


@pytest.mark.usefixtures("each_scheme")
def test_the_page_of_a_chat_is_accessible_and_fits(
    browser_of_lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    browser_of_lead.goto(live_server.url + chat_url(compared, 5))
    browser_of_lead.keyboard.press("1")
    saved(browser_of_lead, "Saved: Judge wrong")
    assert_fine(browser_of_lead, every_impact=True)
