"""An author in a real browser asks for a revision, reads it and takes it over; axe, CSP, small screens."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from alignment.models.suggestions import Suggestion
from evaluation.models.prompts import PromptDraft
from labeling.models.people import User
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.suggestions import (
    REASON,
    RULE,
    Disputes,
    answer_with,
    asked,
    revised,
    suggesting,
    work_off,
)
from tests.stub_endpoint import StubEndpoint, StubReply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
EDITOR = "/criteria/polite/prompt/"


@pytest.fixture
def lead(page: Page, live_server: LiveServer, disputes: Disputes, reviser: StubEndpoint) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def open_panel(page: Page, live_server: LiveServer) -> None:
    """The editor, once the panel has its contents."""
    page.goto(live_server.url + EDITOR)
    expect(page.locator("#suggestions")).not_to_contain_text("Looking for disagreements")


@pytest.mark.flow
def test_asked_by_keyboard_followed_without_a_reload_and_taken_over(
    lead: Page, live_server: LiveServer, disputes: Disputes
) -> None:
    open_panel(lead, live_server)
    chats = lead.get_by_label("Maximum chats")
    chats.fill("2")
    chats.press("Tab")
    expect(lead.locator("#suggestions")).to_contain_text("2 go to")
    expect(chats).to_have_value("2")
    lead.get_by_role("button", name="Suggest a revision").press("Enter")
    expect(lead.locator("#suggestions")).to_contain_text("Waiting for a worker")
    row = Suggestion.objects.get()
    work_off(row)
    expect(lead.get_by_role("heading", name=REASON)).to_be_visible()
    expect(lead.locator(".drafted ins")).to_contain_text("An apology alone is not polite.")
    first = row.material["chats"][0]
    link = lead.locator(".drafted .md a", has_text="1").first
    expect(link).to_have_attribute("href", f"/runs/{first['run']}/chats/{first['id']}/?criterion=polite")
    lead.get_by_role("button", name="Use as my draft").press("Enter")
    expect(lead.locator(".facts")).to_contain_text("suggested by a model")
    expect(lead.get_by_label("Objective")).to_have_value(re.compile(RULE))
    expect(lead.locator("#suggestions")).to_contain_text("This is your draft now.")
    row.refresh_from_db()
    assert PromptDraft.objects.get().text == row.text
    lead.get_by_role("button", name="Restore my earlier draft").press("Enter")
    expect(lead.get_by_label("Objective")).not_to_have_value(re.compile(RULE))
    assert not PromptDraft.objects.exists()


def test_what_was_just_typed_is_in_the_draft_that_is_revised(
    lead: Page, live_server: LiveServer, reviser: StubEndpoint
) -> None:
    open_panel(lead, live_server)
    lead.get_by_label("Tone").press_sequentially("Typed this moment. ")
    lead.get_by_role("button", name="Suggest a revision").click()
    expect(lead.locator("#suggestions")).to_contain_text("Waiting for a worker")
    assert "Typed this moment." in Suggestion.objects.get().base_text


@pytest.mark.heavy
def test_while_one_is_asked_for_the_panel_stays_as_the_reader_left_it(
    lead: Page, live_server: LiveServer, disputes: Disputes
) -> None:
    asked(disputes, User.objects.get(username="ines"))
    asked(disputes, User.objects.get(username="ines"), anew=True)
    open_panel(lead, live_server)
    lead.get_by_role("button", name="Ask again").click()
    expect(lead.locator("#suggestions")).to_contain_text("Waiting for a worker")
    lead.get_by_text("Earlier suggestions").click()
    with lead.expect_response(lambda answer: "seen=" in answer.url) as again:
        lead.get_by_role("button", name="Cancel").focus()
    assert again.value.status == 204
    expect(lead.locator(".earlier")).to_have_attribute("open", "")
    expect(lead.get_by_role("button", name="Cancel")).to_be_focused()
    lead.keyboard.press("Enter")
    expect(lead.locator(".asking")).to_have_count(0)


def test_dismissed_it_goes_and_is_opened_again_from_the_list(
    lead: Page, live_server: LiveServer, disputes: Disputes
) -> None:
    asked(disputes, User.objects.get(username="ines"))
    open_panel(lead, live_server)
    lead.get_by_role("button", name="Dismiss").click()
    expect(lead.locator(".drafted")).to_have_count(0)
    lead.get_by_text("Earlier suggestions").click()
    lead.locator(".earlier button").click()
    expect(lead.get_by_role("heading", name=REASON)).to_be_visible()


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(
    lead: Page,
    live_server: LiveServer,
    disputes: Disputes,
    settings: Settings,
) -> None:
    user = User.objects.get(username="ines")
    asked(disputes, user)
    check(lead, live_server)
    long = f"{'wide' * 60} " + "Every rule has a case that speaks for it. " * 20
    answer = answer_with(revised(disputes.champion.text, rule=long), reason=long[:200])
    for reply in (StubReply("x" * 400), StubReply(answer)):
        with suggesting(settings, disputes, lambda body, reply=reply: reply):
            asked(disputes, user, anew=True)
            check(lead, live_server)


def check(page: Page, live_server: LiveServer) -> None:
    open_panel(page, live_server)
    for folded in page.locator(".suggest details").all():
        folded.evaluate("e => e.open = true")
    assert_fine(page)
