"""From chat to chat: the next one is fetched ahead and shown at once; the last can be corrected."""

import json

import pytest
from playwright.sync_api import Page, Request, Route, expect

from labeling.models.labels import Assignment, Label
from labeling.models.rubric import RubricGuideline
from tests.factories.labelling_job import Desk
from tests.factories.rating_screen import (
    answers,
    chosen,
    forgive,
    mouse_uses,
    question,
    ready,
    save_elsewhere,
    saved,
    watch_mouse,
)

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


def test_the_next_chat_is_in_place_without_loading_a_page(ahead: Page, desk: Desk) -> None:
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


@pytest.mark.heavy
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


@pytest.mark.heavy
def test_the_offer_goes_after_ten_seconds(ahead: Page) -> None:
    finish(ahead)
    expect(ahead.locator("#submitted")).to_be_visible()
    expect(ahead.locator("#submitted")).to_be_hidden(timeout=12_000)


@pytest.mark.heavy
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


@pytest.mark.heavy
def test_the_last_chat_of_a_job_leads_to_the_queue(ahead: Page) -> None:
    for number in (1, 2, 3):
        expect(ahead.locator("h1")).to_contain_text(f"chat-{number}")
        finish(ahead)
    expect(ahead.get_by_role("heading", level=1)).to_have_text("All done")


@pytest.mark.heavy
def test_keys_answer_once_after_many_chats_in_one_page(ahead: Page, desk: Desk) -> None:
    """Nothing of an earlier chat listens on: no key counts twice, no mouse was needed."""
    desk.job.raters.remove(desk.raters[1])  # who would wait for the last chat
    watch_mouse(ahead)
    finish(ahead)
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    finish(ahead)
    expect(ahead.locator("h1")).to_contain_text("chat-3")
    ahead.keyboard.press("j")
    expect(question(ahead)).to_have_text("Is brief so?")
    ahead.keyboard.press("t")
    expect(question(ahead)).to_have_text("Is honest so?")
    saved(ahead)
    assert mouse_uses(ahead) == 0
    assert answers()["brief"] is True


# ---------- when the next chat is taken ----------


def held() -> int:
    return Assignment.objects.filter(state="leased").count()


def test_looking_at_a_chat_takes_no_other_one(ahead: Page) -> None:
    """All criteria are few here; the first answer says that the rater works on it."""
    ahead.keyboard.press("j")
    ahead.wait_for_timeout(400)
    assert held() == 1
    with ahead.expect_response("**/next/"):
        ahead.keyboard.press("t")
    assert held() == 2


def test_the_next_chat_waits_until_the_answers_are_saved(ahead: Page, problems: list[str]) -> None:
    labels = "**/api/assignments/*/labels/**"
    ahead.route(labels, lambda route: route.abort())
    ahead.keyboard.press("t")
    expect(ahead.locator("#save")).to_contain_text("Offline")
    ahead.wait_for_timeout(400)
    assert held() == 1
    with ahead.expect_response("**/next/"):
        ahead.unroute(labels)
    forgive(problems, "ERR_FAILED")


def test_who_submits_before_the_next_chat_is_there_gets_it_in_place_too(ahead: Page) -> None:
    for key in "tttt":
        ahead.keyboard.press(key)
    ahead.keyboard.press("Control+Enter")
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    assert ahead.evaluate("window.samePage") is True


def test_a_skipped_chat_is_followed_in_place_too(ahead: Page) -> None:
    ahead.keyboard.press("s")
    dialog = ahead.get_by_role("dialog", name="Skip this chat")
    dialog.get_by_label("Too long").check()
    dialog.get_by_role("button", name="Skip and next").press("Enter")
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    assert ahead.evaluate("window.samePage") is True


# ---------- what stands there then ----------


@pytest.mark.heavy
def test_a_chat_fetched_ahead_knows_how_long_it_is_held_and_what_was_rewritten_since(
    ahead: Page, desk: Desk
) -> None:
    ahead.clock.install()
    ahead.reload()
    ready(ahead)
    with ahead.expect_response(lambda response: "/rate/" in response.url):
        for key in "tttt":
            ahead.keyboard.press(key)
    ahead.wait_for_load_state("networkidle")
    RubricGuideline.objects.create(rubric=desk.rubric, number=1, text="Read it twice.")
    ahead.clock.fast_forward(56 * 60_000)
    with ahead.expect_response("**/guideline/"):
        ahead.keyboard.press("Control+Enter")
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    expect(ahead.locator("#reworded")).to_contain_text("Guideline")
    ahead.clock.fast_forward(3 * 60_000)
    expect(ahead.locator("#lease")).to_be_visible()


def test_the_bar_counts_the_chat_just_submitted(ahead: Page) -> None:
    finish(ahead)
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    expect(ahead.locator(".dock .bar")).to_have_attribute("aria-label", "1 of 3 done")


def test_the_focus_goes_to_the_name_of_the_next_chat_and_keys_work_from_there(ahead: Page) -> None:
    finish(ahead)
    expect(ahead.locator("h1")).to_be_focused()
    expect(ahead.locator("h1")).to_contain_text("Chat 2 of 3:")
    ahead.keyboard.press("ArrowDown")
    expect(question(ahead)).to_have_text("Is brief so?")


def test_keys_between_two_chats_answer_neither(ahead: Page) -> None:
    for key in "tttt":
        ahead.keyboard.press(key)
    saved(ahead)
    asked: list[Request] = []

    def late(route: Route) -> None:
        ahead.on("request", lambda request: asked.append(request) if "/labels/" in request.url else None)
        ahead.keyboard.press("f")
        expect(ahead.locator("#why")).to_have_text("Submitting")
        route.continue_()

    ahead.route("**/submit/", late)
    ahead.keyboard.press("Control+Enter")
    expect(ahead.locator("h1")).to_contain_text("chat-2")
    expect(ahead.locator("#why")).to_have_text("0 of 4 answered, 4 open")
    assert asked == []
    assert set(answers().values()) == {True}


def test_submitting_sends_the_pages_state_and_the_time_since_the_last_answer(
    screen: Page, desk: Desk
) -> None:
    RubricGuideline.objects.create(rubric=desk.rubric, number=1, text="Read it twice.")
    screen.clock.install()
    screen.reload()
    ready(screen)
    for key in "tttt":
        screen.keyboard.press(key)
    saved(screen)
    screen.clock.fast_forward(50_000)
    with screen.expect_request("**/submit/") as sent:
        screen.keyboard.press("Control+Enter")
    body = json.loads(sent.value.post_data or "")
    assert body["revisions"] == {"polite": 1, "brief": 1, "honest": 1, "correct": 1}
    assert body["guideline"] == 1
    assert 50_000 <= body["active_ms"] < 55_000


@pytest.mark.heavy
def test_answers_changed_elsewhere_are_shown_before_they_are_submitted(
    screen: Page, desk: Desk, problems: list[str]
) -> None:
    for key in "tttt":
        screen.keyboard.press(key)
    saved(screen)
    save_elsewhere(desk, value=False)
    stale = {"code": "stale", "detail": "Changed.", "criteria": ["polite"]}
    screen.route("**/submit/", lambda route: route.fulfill(status=409, json=stale))
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("#said")).to_have_text("Changed elsewhere: Polite. Check them before you submit")
    expect(chosen(screen)).to_have_attribute("value", "false")
    screen.unroute("**/submit/")
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("h1")).to_contain_text("chat-2")
    assert answers()["polite"] is False
    forgive(problems, "409")


def test_the_queue_fetches_the_screens_scripts_beforehand(ahead: Page) -> None:
    modules = "link[rel=modulepreload]"
    expected = ahead.locator(modules).count()
    ahead.goto(ahead.url[: ahead.url.index("/rate/")] + "/queue/")
    expect(ahead.locator(modules)).to_have_count(expected)
