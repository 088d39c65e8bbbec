"""What the rating screen keeps in the browser until the server has it: over tabs, crashes and lost chats."""

import json
from collections.abc import Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.labels import Assignment, Label
from labeling.models.rubric import Criterion
from labeling.rating.services.leases import assignment_next
from tests.factories.labelling_job import Desk, expire
from tests.factories.rating_screen import answers, forgive, no_chat_ahead, question, saved

pytestmark = [pytest.mark.browser, pytest.mark.heavy, pytest.mark.django_db(transaction=True)]

LABELS = "**/api/assignments/*/labels/**"
KEPT = "() => Object.keys(localStorage).filter(name => name.startsWith('lace-rate-'))"


@pytest.fixture
def second(screen: Page) -> Iterator[Page]:
    """The same chat in another tab of the same browser."""
    page = screen.context.new_page()
    no_chat_ahead(page)
    page.goto(screen.url)
    expect(page.locator("#save")).to_have_text("Saves as you answer")
    yield page
    page.close()


def offline(page: Page, key: str, kept: int = 1) -> None:
    """Press the key where the server can't be reached."""
    page.route(LABELS, lambda route: route.abort())
    page.keyboard.press(key)
    expect(page.locator("#save")).to_have_text(f"Offline, {kept} in this browser, retrying")


def test_what_one_tab_keeps_outlives_what_another_one_saves(
    screen: Page, second: Page, problems: list[str]
) -> None:
    offline(second, "t")
    screen.keyboard.press("j")
    screen.keyboard.press("f")
    saved(screen)
    second.close(run_before_unload=False)  # as after a crash
    screen.reload()
    saved(screen)
    assert answers() == {"polite": True, "brief": False}
    assert screen.evaluate(KEPT) == []


def test_two_tabs_offline_keep_the_answers_of_both(screen: Page, second: Page, problems: list[str]) -> None:
    offline(second, "t")
    screen.keyboard.press("j")
    offline(screen, "f")
    second.close(run_before_unload=False)
    screen.on("dialog", lambda dialog: dialog.accept())
    screen.reload()
    expect(screen.locator("#save")).to_have_text("Offline, 2 in this browser, retrying")
    screen.unroute(LABELS)
    saved(screen)
    assert answers() == {"polite": True, "brief": False}
    forgive(problems, "ERR_FAILED")


def test_the_newer_of_two_kept_answers_to_one_criterion_counts(
    screen: Page, second: Page, problems: list[str]
) -> None:
    offline(second, "t")
    offline(screen, "f")
    second.close(run_before_unload=False)
    screen.on("dialog", lambda dialog: dialog.accept())
    screen.unroute(LABELS)
    screen.reload()
    saved(screen)
    assert answers() == {"polite": False}
    assert screen.evaluate(KEPT) == []
    forgive(problems, "ERR_FAILED")


def test_a_criterion_retired_while_its_answer_waits_leaves_the_chat_usable(
    screen: Page, problems: list[str]
) -> None:
    offline(screen, "t")
    Criterion.objects.filter(key="polite").update(state="retired")
    screen.on("dialog", lambda dialog: dialog.accept())
    screen.reload()
    screen.unroute(LABELS)
    screen.keyboard.press("u")
    expect(screen.locator("#said")).to_have_text("Nothing to undo")
    for key in "ttt":
        screen.keyboard.press(key)
    saved(screen)
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("h1")).to_contain_text("chat-2")
    assert answers() == {"brief": True, "honest": True, "correct": True}
    forgive(problems, "ERR_FAILED")


def test_a_criterion_retired_while_the_chat_is_open_goes_from_the_screen(
    screen: Page, problems: list[str]
) -> None:
    Criterion.objects.filter(key="polite").update(state="retired")
    screen.keyboard.press("t")
    expect(screen.locator("#said")).to_have_text("Polite is no longer part of this job")
    expect(screen.locator("#why")).to_have_text("0 of 3 answered, 3 open")
    for key in "ttt":
        screen.keyboard.press(key)
    saved(screen)
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("h1")).to_contain_text("chat-2")
    forgive(problems, "404")


def test_answers_not_sent_before_the_chat_was_lost_are_there_when_it_is_taken_again(
    screen: Page, desk: Desk, live_server: LiveServer, problems: list[str]
) -> None:
    offline(screen, "f")
    first = Assignment.objects.get(state="leased")
    Assignment.objects.filter(state="open").delete()
    expire(first)
    other = assignment_next(rater=desk.raters[1], job=desk.job)
    assert other is not None
    expire(other)
    again = assignment_next(rater=desk.rater, job=desk.job)
    assert again is not None
    assert (again.chat_id, again.pk == first.pk) == (first.chat_id, False)
    screen.on("dialog", lambda dialog: dialog.accept())
    screen.unroute(LABELS)
    screen.goto(live_server.url + reverse("labeling:rate", args=[again.pk]))
    saved(screen)
    assert answers() == {"polite": False}
    forgive(problems, "ERR_FAILED", "409", "404")


def test_what_nobody_came_back_for_is_removed_after_a_month(screen: Page) -> None:
    day = 24 * 3600 * 1000
    put = """([name, days, day]) => localStorage.setItem(
        name, JSON.stringify({what: "pending", key: "polite", at: Date.now() - days * day}))"""
    screen.evaluate(put, ["lace-rate-0123:old", 31, day])
    screen.evaluate(put, ["lace-rate-0123:new", 29, day])
    screen.evaluate("localStorage.setItem('lace-rate-0123', 'spoilt')")
    screen.reload()
    expect(screen.locator("#save")).to_have_text("Saves as you answer")
    assert screen.evaluate(KEPT) == ["lace-rate-0123:new"]


def test_no_words_of_the_chat_stay_in_the_browser(screen: Page, problems: list[str]) -> None:
    screen.evaluate("getSelection().selectAllChildren(document.querySelector('#m1 .md p'))")
    words = screen.locator("#m1 .md p").text_content() or ""
    screen.keyboard.press("e")
    offline(screen, "f")
    kept = screen.evaluate("JSON.stringify(Object.values(localStorage))")
    assert json.dumps(words).strip('"') not in kept
    screen.unroute(LABELS)
    saved(screen)
    assert Label.objects.get().evidence[0]["quote"] == words
    forgive(problems, "ERR_FAILED")


def test_a_comment_without_an_answer_is_said_to_be_kept_here(screen: Page) -> None:
    screen.keyboard.press("t")
    screen.keyboard.press("c")
    screen.keyboard.type("look again")
    screen.keyboard.press("Escape")
    expect(question(screen)).to_have_text("Is brief so?")
    expect(screen.locator("#save")).to_contain_text(". 1 note waits for an answer (this browser only)")
    screen.keyboard.press("t")
    saved(screen)
    assert Label.objects.get(criterion__key="brief").rationale == "look again"


def test_skipping_sends_first_what_waits(screen: Page, problems: list[str]) -> None:
    offline(screen, "t")
    screen.unroute(LABELS)
    screen.keyboard.press("s")
    dialog = screen.get_by_role("dialog", name="Skip this chat")
    dialog.get_by_label("Too long").check()
    dialog.get_by_role("button", name="Skip and next").press("Enter")
    expect(screen.locator("h1")).to_contain_text("chat-2")
    assert answers() == {"polite": True}
    forgive(problems, "ERR_FAILED")
