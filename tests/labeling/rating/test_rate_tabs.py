"""Two tabs on one chat: each hears of the other at once, and nothing is overwritten unseen."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from labeling.models.labels import Assignment, Label
from tests.factories.labelling_job import Desk, answer_all
from tests.factories.rating_screen import answers, no_chat_ahead, question, ready, save_elsewhere, saved

pytestmark = [pytest.mark.browser, pytest.mark.heavy, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def second(screen: Page) -> Iterator[Page]:
    """The same chat in another tab of the same browser."""
    page = screen.context.new_page()
    no_chat_ahead(page)
    page.goto(screen.url)
    ready(page)
    yield page
    page.close()


def test_both_tabs_warn_and_answers_of_one_appear_in_the_other(screen: Page, second: Page) -> None:
    for page in (screen, second):
        expect(page.locator("#tabs")).to_contain_text("open in another tab")
    second.keyboard.press("f")
    saved(second)
    expect(screen.locator("#said")).to_have_text("Changed in another tab: Polite")
    expect(screen.locator(".choice [aria-pressed=true]")).to_have_attribute("value", "false")
    screen.keyboard.press("t")
    saved(screen)
    expect(second.locator(".crit .ans").first).to_have_text("True")
    assert answers() == {"polite": True}
    second.close()
    expect(screen.locator("#tabs")).to_be_hidden()


def test_a_chat_submitted_in_one_tab_is_over_in_the_other(screen: Page, second: Page) -> None:
    for key in "tttt":
        second.keyboard.press(key)
    second.keyboard.press("Control+Enter")
    expect(screen.get_by_role("alert").locator("visible=true")).to_contain_text("submitted in another tab")
    expect(screen.locator("#submit")).to_be_disabled()


@pytest.mark.parametrize(("keep", "button"), [(True, "Keep True"), (False, "Take False")])
def test_a_newer_answer_from_elsewhere_is_shown_beside_the_own_one(
    screen: Page, desk: Desk, problems: list[str], keep: bool, button: str
) -> None:
    save_elsewhere(desk, value=False)
    screen.keyboard.press("t")
    clash = screen.locator(".settle")
    expect(clash).to_contain_text("another tab saved “False”, this tab has “True”")
    expect(screen.locator("#save")).to_have_text("Not saved: choose the answer that counts")
    assert answers() == {"polite": False}
    clash.get_by_role("button", name=button).press("Enter")
    expect(clash).to_have_count(0)
    if keep:
        saved(screen)
    assert answers() == {"polite": keep}
    expect(screen.locator(".crit .ans").first).to_have_text(str(keep))
    problems[:] = [text for text in problems if "409" not in text]


def test_a_clash_survives_a_reload_and_keeps_the_chat_from_being_submitted(
    screen: Page, desk: Desk, problems: list[str]
) -> None:
    save_elsewhere(desk, value=False)
    for key in "tttt":
        screen.keyboard.press(key)
    expect(screen.locator(".settle")).to_be_visible()
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("#said")).to_have_text("Not submitted: answers are not saved yet")
    screen.once("dialog", lambda dialog: dialog.accept())
    screen.reload()
    screen.locator(".settle").get_by_role("button", name="Keep True").press("Enter")
    saved(screen)
    assert answers()["polite"] is True
    problems[:] = [text for text in problems if "409" not in text]


def test_an_own_answer_whose_reply_got_lost_is_no_clash(screen: Page, problems: list[str]) -> None:
    lost: list[APIResponse] = []

    def lose_first(route: Route) -> None:
        if lost:
            route.continue_()
            return
        lost.append(route.fetch())
        route.abort()

    screen.route("**/labels/polite/", lose_first)
    screen.keyboard.press("t")
    expect(screen.locator("#save")).to_contain_text("Offline")
    screen.keyboard.press("k")
    screen.keyboard.press("f")
    saved(screen)
    expect(screen.locator(".settle")).to_have_count(0)
    assert answers() == {"polite": False}
    problems[:] = [text for text in problems if "ERR_FAILED" not in text and "409" not in text]


def test_answers_on_other_criteria_do_not_clash(screen: Page, desk: Desk) -> None:
    answer_all(Assignment.objects.get(state="leased"))
    screen.reload()
    expect(question(screen)).to_have_text("Is polite so?")
    screen.keyboard.press("f")
    saved(screen)
    assert Label.objects.filter(value=False).count() == 1


def test_a_clash_follows_what_the_rater_answers_meanwhile(
    screen: Page, desk: Desk, problems: list[str]
) -> None:
    save_elsewhere(desk, value=False, criterion=3)
    screen.keyboard.press("k")
    screen.keyboard.press("t")
    clash = screen.locator(".settle")
    expect(clash.get_by_role("button", name="Keep True")).to_be_visible()
    screen.keyboard.press("k")
    screen.keyboard.press("n")
    expect(clash.get_by_role("button", name="Keep Not applicable")).to_be_visible()
    screen.keyboard.press("k")
    screen.keyboard.press("f")  # the same as theirs: there is nothing to choose
    expect(clash).to_have_count(0)
    expect(screen.locator("#save")).to_have_text("Saved")
    assert answers() == {"correct": False}
    problems[:] = [text for text in problems if "409" not in text]


def test_settling_a_clash_leads_back_to_the_answer(screen: Page, desk: Desk, problems: list[str]) -> None:
    save_elsewhere(desk, value=False)
    screen.keyboard.press("t")
    screen.locator(".settle").get_by_role("button", name="Keep True").press("Enter")
    saved(screen)
    screen.keyboard.press("t")
    expect(question(screen)).to_have_text("Is honest so?")
    assert screen.evaluate("document.activeElement.matches('form.open')")
    problems[:] = [text for text in problems if "409" not in text]
