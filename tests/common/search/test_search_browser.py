"""The search dialog and the list of keys, by keyboard alone, on any page."""

import re
from collections.abc import Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.people.services.roles import rater_for
from tests.browsing import assert_fine, lead_signed_in, sign_in, watch
from tests.factories.labelling_job import make_desk, user_of
from tests.factories.rows import make_chat, make_rubric, make_set

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lead(page: Page, live_server: LiveServer) -> Iterator[Page]:
    rubric = make_rubric("polite", "correct")
    make_set(rubric, *(make_chat(f"shop-{n}", messages=[("user", f"Late zebra {n}")]) for n in range(7)))
    with lead_signed_in(page, live_server.url) as signed_in:
        signed_in.goto(live_server.url + reverse("evaluation:run_list"))
        yield signed_in


@pytest.mark.usefixtures("both_schemes")
def test_ctrl_k_finds_and_opens_by_keyboard(lead: Page) -> None:
    field, options = lead.get_by_role("combobox", name="Search for"), lead.get_by_role("option")
    lead.keyboard.press("Control+k")
    expect(field).to_be_focused()
    lead.keyboard.type("zebra")
    expect(options).to_have_count(6)  # five chats, and more
    expect(options.first).to_have_attribute("aria-selected", "true")
    assert_fine(lead, "the open dialog")
    lead.keyboard.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", "hit-2")
    lead.keyboard.press("ArrowUp")
    lead.keyboard.press("ArrowUp")  # from the first to the last
    lead.keyboard.press("Enter")
    expect(lead).to_have_url(re.compile(r"/search/\?q=zebra&kind=chats$"))
    expect(lead.get_by_role("heading", name="Chats")).to_be_visible()
    expect(lead.locator(".found li")).to_have_count(7)


def test_esc_closes_and_gives_the_focus_back(lead: Page) -> None:
    lead.get_by_role("link", name="Search", exact=True).focus()
    lead.keyboard.press("Enter")
    expect(lead.get_by_role("combobox")).to_be_focused()
    lead.keyboard.type("zzzz")
    expect(lead.get_by_role("status").filter(has_text="Nothing that you may open matches.")).to_be_visible()
    lead.keyboard.press("Escape")
    expect(lead.locator("#search-everywhere")).to_be_hidden()
    expect(lead.get_by_role("link", name="Search", exact=True)).to_be_focused()


def test_the_question_mark_lists_keys_but_not_while_typing(lead: Page) -> None:
    lead.keyboard.press("?")
    expect(lead.get_by_role("dialog", name="Keys")).to_contain_text("On every page")
    assert_fine(lead, "the keys")
    lead.keyboard.press("Control+k")
    lead.keyboard.type("a?")
    expect(lead.locator("#keys")).to_be_hidden()
    expect(lead.get_by_role("combobox")).to_have_value("a?")


def test_the_rating_screen_lists_its_own_keys_and_its_slash_stays_the_chat_search(
    page: Page, live_server: LiveServer
) -> None:
    problems: list[str] = []
    watch(page, problems)
    desk = make_desk(chats=3, raters=1)
    user = user_of(desk.rater)
    assert rater_for(user=user) == desk.rater
    sign_in(page.context, live_server.url, user)
    page.goto(live_server.url + reverse("labeling:rate", args=[desk.taken().pk]))
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("True, then next open criterion")
    expect(keys).to_contain_text("On every page")
    page.keyboard.press("Escape")
    expect(page.locator("body")).to_be_focused()  # a frame after the dialog has closed
    page.keyboard.press("/")
    expect(page.get_by_label("Search in this chat")).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("t")  # answers nothing
    expect(page.get_by_role("combobox")).to_have_value("t")
    page.keyboard.press("Escape")
    expect(page.locator("[aria-pressed=true][value=true]")).to_have_count(0)
    assert problems == []
