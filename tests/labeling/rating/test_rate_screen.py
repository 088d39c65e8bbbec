"""The rating screen in a real browser: keyboard, keys dialog, search, accessibility, CSP."""

import re
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.labels import Assignment, Label
from labeling.rating.services.leases import assignment_next
from tests.browsing import assert_fine
from tests.factories.labelling_job import Desk, answer_all, expire, user_of
from tests.factories.rating_screen import (
    KEYS,
    answers,
    mouse_uses,
    question,
    ready,
    saved,
    sign_in,
    watch_mouse,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


# ---------- labelling by keyboard ----------


def test_a_chat_is_labelled_submitted_and_followed_by_the_next_with_keys_alone(
    screen: Page, desk: Desk
) -> None:
    watch_mouse(screen)
    expect(question(screen)).to_have_text("Is polite so?")
    expect(screen.locator("#submit")).to_be_disabled()
    for key, following in (("t", "brief"), ("2", "honest"), ("1", "correct"), ("n", "correct")):
        screen.keyboard.press(key)
        expect(question(screen)).to_have_text(f"Is {following} so?")
    expect(screen.locator("#why")).to_have_text("All answered")
    saved(screen)
    assert answers() == {"polite": True, "brief": False, "honest": True, "correct": None}
    assert mouse_uses(screen) == 0
    screen.keyboard.press("Control+Enter")
    expect(screen.locator(".dock > span").first).to_have_text("2 of 3")
    assert Assignment.objects.filter(rater=desk.rater, state="submitted").count() == 1
    assert set(Label.objects.values_list("state", flat=True)) == {"submitted"}


def test_forty_chats_worth_of_keys_need_no_mouse_and_end_in_the_queue(screen: Page, desk: Desk) -> None:
    for _ in desk.chats:
        ready(screen)
        for key in "tftt":
            screen.keyboard.press(key)
        expect(screen.locator("#why")).to_have_text("All answered")
        before = screen.url
        screen.keyboard.press("Control+Enter")
        expect(screen).not_to_have_url(before)
    expect(screen.get_by_role("heading", level=1)).to_have_text("All done")
    assert Assignment.objects.filter(rater=desk.rater, state="submitted").count() == 3


def test_submitting_too_early_leads_to_the_open_criterion_and_says_why(screen: Page) -> None:
    screen.keyboard.press("t")
    screen.keyboard.press("k")
    expect(question(screen)).to_have_text("Is polite so?")
    screen.keyboard.press("Control+Enter")
    expect(question(screen)).to_have_text("Is brief so?")
    expect(screen.locator("#said")).to_have_text("1 of 4 answered, 3 open")
    saved(screen)


def test_not_applicable_has_no_key_where_the_criterion_always_applies(screen: Page) -> None:
    screen.keyboard.press("n")
    screen.keyboard.press("3")
    expect(question(screen)).to_have_text("Is polite so?")
    assert not Label.objects.exists()


def test_arrows_and_j_k_move_between_criteria_and_answer_nothing(screen: Page) -> None:
    for key, there in (
        ("j", "brief"),
        ("ArrowDown", "honest"),
        ("ArrowUp", "brief"),
        ("k", "polite"),
        ("k", "correct"),
    ):
        screen.keyboard.press(key)
        expect(question(screen)).to_have_text(f"Is {there} so?")
    assert not Label.objects.exists()


def test_keys_with_modifiers_held_keys_and_composing_do_nothing(screen: Page) -> None:
    for key in ("Alt+t", "Control+f", "Meta+t", "Shift+T"):
        screen.keyboard.press(key)
    fire = """(options) => document.body.dispatchEvent(
        new KeyboardEvent("keydown", {key: "t", bubbles: true, cancelable: true, ...options}))"""
    screen.evaluate(fire, {"repeat": True})
    screen.evaluate(fire, {"isComposing": True})
    expect(question(screen)).to_have_text("Is polite so?")
    screen.evaluate(fire, {})
    expect(question(screen)).to_have_text("Is brief so?")
    saved(screen)


def test_the_mouse_works_too(screen: Page) -> None:
    screen.get_by_role("button", name=re.compile("Honest")).click()
    screen.get_by_role("button", name=re.compile(r"^\s*False")).locator("visible=true").click()
    expect(question(screen)).to_have_text("Is correct so?")
    saved(screen)
    assert answers() == {"honest": False}


# ---------- comments, evidence ----------


def test_letters_typed_into_the_comment_are_text_and_are_saved_with_the_answer(screen: Page) -> None:
    screen.keyboard.press("c")
    screen.keyboard.type("tfnusjk? not true /")
    screen.keyboard.press("Control+Enter")
    screen.keyboard.press("Escape")
    assert not Label.objects.exists()
    screen.keyboard.press("t")
    saved(screen)
    label = Label.objects.get()
    assert (label.value, label.rationale) == (True, "tfnusjk? not true /")
    screen.keyboard.press("k")
    screen.keyboard.press("c")
    with screen.expect_response("**/labels/polite/"):
        screen.keyboard.type(" indeed")
    saved(screen)
    label.refresh_from_db()
    assert (label.rationale, label.revision) == ("tfnusjk? not true / indeed", 2)


def test_a_comment_before_the_answer_survives_a_reload(screen: Page) -> None:
    screen.keyboard.press("c")
    screen.keyboard.type("look again")
    screen.keyboard.press("Escape")
    screen.reload()
    expect(screen.locator("textarea:visible")).to_have_value("look again")


def test_turns_are_picked_as_evidence_with_keys(screen: Page) -> None:
    screen.keyboard.press("e")
    screen.keyboard.press("ArrowDown")
    screen.keyboard.press("Space")
    screen.keyboard.press("e")
    screen.keyboard.press("f")
    saved(screen)
    assert Label.objects.get().evidence == [{"n": 2}]
    screen.keyboard.press("k")
    expect(screen.locator(".turn.picked")).to_have_id("m2")
    expect(screen.locator(".ev:visible .t")).to_have_text("turn 2")
    screen.locator(".ev:visible").get_by_role("button").press("Enter")
    expect(screen.locator(".turn.picked")).to_have_count(0)
    saved(screen)
    assert Label.objects.get().evidence == []


# ---------- dialogs, search ----------


def test_a_question_mark_shows_the_keys_and_keys_rest_while_it_is_open(screen: Page) -> None:
    screen.keyboard.press("?")
    dialog = screen.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    screen.keyboard.press("t")
    screen.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(question(screen)).to_have_text("Is polite so?")
    assert not Label.objects.exists()


def test_skipping_asks_for_a_reason_and_brings_the_next_chat(screen: Page, problems: list[str]) -> None:
    first = screen.url
    screen.keyboard.press("s")
    dialog = screen.get_by_role("dialog", name="Skip this chat")
    dialog.get_by_label("Something else").check()
    dialog.get_by_role("button", name="Skip and next").press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("Give the reason in a few words.")
    dialog.get_by_label("In your words").fill("two chats in one")
    dialog.get_by_role("button", name="Skip and next").press("Enter")
    expect(screen).not_to_have_url(first)
    expect(screen.locator("h1")).to_contain_text("chat-2")
    assert Assignment.objects.get(state="skipped").skip_reason == "other: two chats in one"
    problems[:] = [text for text in problems if "400" not in text]


def test_search_finds_turns_and_leaves_the_answer_keys_alone(screen: Page) -> None:
    screen.keyboard.press("/")
    screen.keyboard.type("on its way")
    expect(screen.locator("#found")).to_have_text("1 of 1")
    expect(screen.locator(".turn.hit")).to_have_id("m2")
    screen.keyboard.press("Escape")
    expect(screen.locator(".turn.hit")).to_have_count(0)
    assert not Label.objects.exists()
    screen.keyboard.press("t")
    saved(screen)


# ---------- a submitted chat ----------


def test_a_submitted_chat_can_be_corrected_and_leads_back_to_the_chat_in_work(
    screen: Page, live_server: LiveServer, desk: Desk
) -> None:
    assignment = Assignment.objects.get(state="leased")
    answer_all(assignment)
    screen.reload()
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("h1")).to_contain_text("chat-2")
    in_work = screen.url
    screen.goto(live_server.url + reverse("labeling:rate", args=[assignment.pk]))
    screen.keyboard.press("f")
    saved(screen)
    assert Label.objects.get(criterion__key="polite").value is False
    screen.keyboard.press("u")
    saved(screen)
    screen.keyboard.press("Control+Enter")
    expect(screen).to_have_url(in_work)
    assert Label.objects.get(criterion__key="polite").value is True


# ---------- for everybody ----------

WINDOWS = [(1280, 720), (640, 360), (390, 844)]  # 640 is 1280 at 200 % zoom


@pytest.mark.usefixtures("each_scheme")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(screen: Page) -> None:
    screen.keyboard.press("t")
    screen.keyboard.press("e")
    screen.keyboard.press("Space")
    screen.keyboard.press("e")
    for dialog in ("", "?", "s"):
        if dialog:
            screen.keyboard.press(dialog)
            expect(screen.locator("dialog[open]")).to_be_visible()
        assert_fine(screen, dialog, WINDOWS)
        screen.keyboard.press("Escape")


@pytest.mark.usefixtures("each_scheme")
def test_nothing_serious_for_axe_on_the_queue(screen: Page, live_server: LiveServer) -> None:
    screen.goto(live_server.url + reverse("labeling:queue"))
    assert_fine(screen, sizes=WINDOWS)


def test_a_phone_can_answer_and_submit_by_touch(browser: Any, live_server: LiveServer, desk: Desk) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    sign_in(context, live_server, user_of(desk.rater))
    phone = context.new_page()
    phone.goto(live_server.url + reverse("labeling:queue"))
    phone.get_by_role("button", name="Start chat 1").tap()
    phone.get_by_role("button", name="Criteria 4 open").tap()
    expect(phone.locator("kbd:visible")).to_have_count(0)
    for _ in KEYS:
        phone.locator(".choice [value=true]:visible").tap()
    expect(phone.locator("#why")).to_contain_text("All answered")
    phone.locator("#submit").tap()
    expect(phone.locator("h1")).to_contain_text("chat-2")
    context.close()


def test_on_a_phone_a_switch_shows_chat_or_criteria_and_keeps_the_place(screen: Page) -> None:
    screen.set_viewport_size({"width": 390, "height": 400})
    chat, criteria = (screen.locator(f"#switch [value={which}]") for which in ("chat", "criteria"))
    for button in (chat, criteria):
        assert button.evaluate("button => button.offsetHeight") >= 44
    expect(criteria).to_have_text("Criteria 4 open")
    expect(screen.locator("#ask")).to_be_hidden()
    expect(screen.locator("#undo")).to_be_in_viewport()
    screen.evaluate("scrollTo(0, 40)")
    criteria.press("Enter")
    expect(question(screen)).to_be_visible()
    expect(screen.locator("#main")).to_be_hidden()
    expect(screen.locator("#undo")).to_be_in_viewport()
    chat.press("Enter")
    expect(screen.locator("h1")).to_be_visible()
    assert screen.evaluate("scrollY") == 40
    screen.set_viewport_size({"width": 1280, "height": 720})
    expect(chat).to_be_hidden()
    expect(question(screen)).to_be_visible()


def test_a_lost_chat_is_not_said_to_be_skipped(screen: Page, desk: Desk) -> None:
    Assignment.objects.filter(state="open").delete()
    expire(Assignment.objects.get())
    assert assignment_next(rater=desk.raters[1], job=desk.job) is not None
    screen.reload()
    expect(screen.get_by_role("status")).to_contain_text("another rater has it now")


@pytest.mark.parametrize("link", ["#m2 .no", "a.skip"])
def test_a_link_within_the_page_leaves_the_work_as_it_is(screen: Page, link: str) -> None:
    screen.keyboard.press("j")
    asked = question(screen).text_content() or ""
    screen.evaluate("window.samePage = true")
    screen.locator(link).focus()
    screen.keyboard.press("Enter")
    expect(screen).to_have_url(re.compile("#m"))
    screen.wait_for_load_state("networkidle")
    assert screen.evaluate("window.samePage") is True
    expect(question(screen)).to_have_text(asked)
