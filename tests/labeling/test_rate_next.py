"""From chat to chat: the next one is fetched ahead and stands there at once; the last can be corrected."""

import json

import pytest
from playwright.sync_api import Page, expect

from labeling.models.labels import Assignment, Label
from tests.labeling.desk import Desk
from tests.labeling.screen import MOUSE_EVENTS, answers, question, ready, saved

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def ahead(screen: Page) -> Page:
    """The screen may fetch the chat after the one in work."""
    screen.unroute("**/api/jobs/*/next/")
    screen.reload()
    ready(screen)
    screen.evaluate("window.samePage = true")
    return screen


def finish(page: Page) -> None:
    with page.expect_response(lambda response: response.url.endswith("/submit/")):
        for key in "tttt":
            page.keyboard.press(key)
        expect(page.locator("#why")).to_have_text("All answered")
        page.wait_for_load_state("networkidle")
        page.keyboard.press("Control+Enter")


def test_the_next_chat_stands_in_place_without_loading_a_page(ahead: Page, desk: Desk) -> None:
    before = ahead.url
    finish(ahead)
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    assert ahead.evaluate("window.samePage") is True
    assert ahead.url != before
    expect(ahead).to_have_title("Chat 2 of 3 · LACE workbench")
    expect(ahead.locator(".dock > span").first).to_have_text("2 of 3")
    expect(ahead.locator("#why")).to_have_text("0 of 4 answered, 4 open")
    ahead.keyboard.press("f")
    expect(question(ahead)).to_have_text("Is brief so?")
    saved(ahead)
    assert Label.objects.get(chat__external_id="chat-2").value is False
    assert Assignment.objects.filter(rater=desk.rater, state="submitted").count() == 1


def test_the_chat_submitted_last_is_offered_for_correction_and_leads_on_again(ahead: Page) -> None:
    first = ahead.url
    finish(ahead)
    toast = ahead.locator("#submitted")
    expect(toast).to_contain_text("chat-1 is submitted.")
    second = ahead.url
    ahead.keyboard.press("b")
    expect(ahead).to_have_url(first)
    expect(ahead.locator("#onwards")).to_contain_text("Go on labelling")
    expect(ahead.locator("#save")).to_have_text("Saved")
    ahead.keyboard.press("f")
    saved(ahead)
    assert Label.objects.get(criterion__key="polite").value is False
    ahead.keyboard.press("Control+Enter")
    expect(ahead).to_have_url(second)


def test_the_offer_goes_after_ten_seconds(ahead: Page) -> None:
    finish(ahead)
    expect(ahead.locator("#submitted")).to_be_visible()
    expect(ahead.locator("#submitted")).to_be_hidden(timeout=12_000)


def test_the_browsers_back_button_opens_the_submitted_chat(ahead: Page) -> None:
    first = ahead.url
    finish(ahead)
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    ahead.go_back()
    expect(ahead).to_have_url(first)
    expect(ahead.locator(".dock > span").first).to_have_text("Submitted")


def test_reading_ahead_shows_nothing_of_the_judge_or_of_others(ahead: Page) -> None:
    finish(ahead)
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    state = json.loads(ahead.locator("#rate-state").text_content() or "")
    assert state["answers"] == {}
    assert "reveal" not in state["urls"]
    assert "verdict" not in ahead.content().lower()


def test_the_last_chat_of_a_job_leads_to_the_queue(ahead: Page) -> None:
    for number in (1, 2, 3):
        expect(ahead.locator("h1")).to_contain_text(f"chat-{number}")
        finish(ahead)
    expect(ahead.get_by_role("heading", level=1)).to_have_text("All done")


def test_keys_answer_once_after_many_chats_in_one_page(ahead: Page, desk: Desk) -> None:
    """Nothing of an earlier chat listens on: no key counts twice, no mouse was needed."""
    desk.job.raters.remove(desk.raters[1])  # who would wait for the last chat
    ahead.evaluate(
        """kinds => {
            window.mouse = 0;
            kinds.forEach(kind => addEventListener(kind, () => window.mouse++, true));
        }""",
        MOUSE_EVENTS,
    )
    finish(ahead)
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    finish(ahead)
    expect(ahead.locator("h1")).to_contain_text("chat-3")
    ahead.keyboard.press("j")
    expect(question(ahead)).to_have_text("Is brief so?")
    ahead.keyboard.press("t")
    expect(question(ahead)).to_have_text("Is honest so?")
    saved(ahead)
    assert ahead.evaluate("window.mouse") == 0
    assert answers()["brief"] is True
