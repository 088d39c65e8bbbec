"""What the rating screen tells: the guideline, new texts, what a submit still needs, how long is left."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.labels import Assignment, Label
from labeling.models.people import Workspace
from labeling.models.rubric import CriterionVersion, RubricGuideline
from tests.factories.labelling_job import Desk
from tests.factories.rating_screen import answers, question, ready, saved

pytestmark = [pytest.mark.browser, pytest.mark.heavy, pytest.mark.django_db(transaction=True)]


def reword(desk: Desk, key: str = "polite") -> None:
    """A second version of a criterion's text."""
    version = CriterionVersion.objects.get(criterion__key=key)
    version.pk, version.number, version.definition = None, 2, "True when it is polite, greetings included."
    version.content_hash = "2" * 64
    version.save()


def leave_minutes(page: Page, minutes: float) -> None:
    Assignment.objects.filter(state="leased").update(
        lease_expires_at=timezone.now() + timedelta(minutes=minutes)
    )
    page.reload()


# ---------- guideline, examples ----------


def test_the_guideline_opens_beside_the_chat_and_answering_goes_on(screen: Page, desk: Desk) -> None:
    CriterionVersion.objects.filter(criterion__key="polite").update(
        guideline="Mind the **tone**.", true_example="“Thank you!”", false_example="“Whatever.”"
    )
    RubricGuideline.objects.create(rubric=desk.rubric, number=1, text="Read the *whole* chat.")
    screen.reload()
    ready(screen)
    form = screen.locator("form.open:visible")
    expect(form).to_contain_text("Example of True“Thank you!”")
    expect(form).to_contain_text("Example of False“Whatever.”")
    screen.keyboard.press("g")
    panel = screen.get_by_role("complementary", name="Guideline")
    expect(panel.locator("strong")).to_have_text("tone")
    expect(panel.locator("em")).to_have_text("whole")
    screen.keyboard.press("t")
    expect(panel.get_by_role("heading", level=2).first).to_have_text("Brief")
    screen.keyboard.press("g")
    expect(panel).to_be_hidden()
    saved(screen)
    assert answers() == {"polite": True}


def test_a_new_text_is_announced_when_the_chat_is_opened(screen: Page, desk: Desk) -> None:
    screen.keyboard.press("t")
    saved(screen)
    reword(desk)
    screen.reload()
    notice = screen.locator("#changes")
    expect(notice).to_contain_text("Polite (version 2)")
    notice.get_by_role("button", name="Read").press("Enter")
    expect(question(screen)).to_have_text("Is polite so?")
    expect(screen.locator(".older:visible")).to_contain_text("older text of this criterion: version 1")
    expect(notice).to_have_count(0)


def test_a_text_that_changes_while_the_rater_works_is_shown_at_once_and_answers_stay(
    screen: Page, desk: Desk
) -> None:
    screen.keyboard.press("t")
    saved(screen)
    reword(desk, "brief")
    screen.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    banner = screen.locator("#reworded")
    expect(banner).to_contain_text("Changed while you work: Brief")
    screen.keyboard.press("t")
    saved(screen)
    assert Label.objects.get(criterion__key="brief").version.number == 1
    banner.get_by_role("button", name="Read the new text").press("Enter")
    expect(banner).to_be_hidden()
    expect(screen.locator("#why")).to_have_text("2 of 4 answered, 2 open")


def test_a_new_guideline_is_announced_while_the_rater_works(screen: Page, desk: Desk) -> None:
    RubricGuideline.objects.create(rubric=desk.rubric, number=1, text="Read the whole chat.")
    screen.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    banner = screen.locator("#reworded")
    expect(banner).to_contain_text("Changed while you work: Guideline")
    reword(desk, "brief")
    screen.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(banner.get_by_role("link")).to_have_text(["Guideline", "Brief"])


def test_what_was_reworded_meanwhile_is_one_link_away(screen: Page, desk: Desk) -> None:
    reword(desk)
    screen.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    with screen.context.expect_page() as opened:
        screen.locator("#reworded").get_by_role("link", name="Polite").press("Enter")
    expect(opened.value.locator("#changed")).to_contain_text("Changes since version 1: Polite")
    expect(opened.value.locator("#changed")).to_contain_text("greetings included")


def test_the_announcement_of_a_new_text_leads_to_what_changed(screen: Page, desk: Desk) -> None:
    screen.keyboard.press("t")
    saved(screen)
    reword(desk)
    screen.reload()
    with screen.context.expect_page() as opened:
        screen.locator("#changes a[href*='/read/']").press("Enter")
    expect(opened.value.locator("#changed")).to_contain_text("Polite")


def test_all_texts_are_linked_from_the_guideline_and_the_queue(
    screen: Page, desk: Desk, live_server: LiveServer
) -> None:
    page = reverse("labeling:read_guideline", args=[desk.rubric.pk])
    screen.keyboard.press("g")
    link = screen.get_by_role("complementary", name="Guideline").get_by_role("link")
    expect(link).to_have_attribute("href", page)
    screen.goto(live_server.url + reverse("labeling:queue"))
    expect(screen.get_by_role("link", name="Guideline")).to_have_attribute("href", page)


def test_hiding_the_announcement_leaves_the_focus_on_the_answer(screen: Page, desk: Desk) -> None:
    screen.keyboard.press("t")
    saved(screen)
    reword(desk)
    screen.reload()
    screen.get_by_role("button", name="Hide this notice").press("Enter")
    assert screen.evaluate("document.activeElement.matches('form.open')")


# ---------- rules of the workspace ----------


def test_submit_says_which_evidence_is_missing(screen: Page) -> None:
    Workspace.objects.update(evidence_on_false=True)
    screen.reload()
    screen.keyboard.press("f")
    expect(question(screen)).to_have_text("Is polite so?")
    expect(screen.locator("#said")).to_have_text("False needs evidence. Press e, then the number of a turn")
    for key in "jttt":
        screen.keyboard.press(key)
    expect(screen.locator("#why")).to_have_text("Evidence is missing: Polite")
    expect(screen.locator("#submit")).to_be_disabled()
    screen.keyboard.press("Control+Enter")
    expect(question(screen)).to_have_text("Is polite so?")
    for key in ("e", "Space", "e"):
        screen.keyboard.press(key)
    expect(screen.locator("#why")).to_have_text("All answered")
    expect(screen.locator("#submit")).to_be_enabled()
    saved(screen)


def test_submit_says_which_comment_is_missing(screen: Page) -> None:
    Workspace.objects.update(comment_required=True)
    screen.reload()
    for _ in range(4):
        screen.keyboard.press("t")
        screen.keyboard.press("j")
    expect(screen.locator("#why")).to_have_text("A comment is missing: Polite and 3 more")
    screen.keyboard.press("c")
    screen.keyboard.type("It is.")
    screen.keyboard.press("Escape")
    expect(screen.locator("#why")).to_have_text("A comment is missing: Brief and 2 more")
    saved(screen)


def test_a_comment_that_was_all_that_was_missing_leads_on(screen: Page) -> None:
    Workspace.objects.update(comment_required=True)
    screen.reload()
    screen.keyboard.press("t")
    expect(question(screen)).to_have_text("Is polite so?")
    screen.keyboard.press("c")
    screen.keyboard.type("It is.")
    screen.keyboard.press("Escape")
    expect(question(screen)).to_have_text("Is brief so?")
    screen.keyboard.press("k")
    screen.keyboard.press("c")
    screen.keyboard.press("Escape")
    expect(question(screen)).to_have_text("Is polite so?")
    saved(screen)


def test_evidence_that_was_all_that_was_missing_leads_on(screen: Page) -> None:
    Workspace.objects.update(evidence_on_false=True)
    screen.reload()
    for key in ("f", "e", "Space", "e"):
        screen.keyboard.press(key)
    expect(question(screen)).to_have_text("Is brief so?")
    saved(screen)


def test_a_chat_is_submitted_from_its_last_comment(screen: Page) -> None:
    Workspace.objects.update(comment_required=True)
    screen.reload()
    for n in range(4):
        for key in "tc":
            screen.keyboard.press(key)
        screen.keyboard.type("So it is.")
        screen.keyboard.press("Control+Enter" if n == 3 else "Escape")
    expect(screen.locator("h1")).to_contain_text("chat-2")
    assert set(Label.objects.values_list("state", "rationale")) == {("submitted", "So it is.")}


# ---------- lease, time ----------


def test_the_lease_is_not_mentioned_until_two_minutes_are_left(screen: Page) -> None:
    expect(screen.locator("#lease")).to_be_hidden()
    leave_minutes(screen, 3)
    ready(screen)
    expect(screen.locator("#lease")).to_be_hidden()
    leave_minutes(screen, 1.5)
    bar = screen.locator("#lease")
    expect(bar).to_contain_text("Less than two minutes left")
    bar.get_by_role("button", name="Extend").press("Enter")
    expect(bar).to_be_hidden()
    assert screen.evaluate("document.activeElement.matches('form.open')")
    assert Assignment.objects.get(state="leased").lease_expires_at > timezone.now() + timedelta(minutes=50)  # type: ignore[operator]


def test_an_answer_renews_the_lease(screen: Page) -> None:
    leave_minutes(screen, 1)
    expect(screen.locator("#lease")).to_be_visible()
    screen.keyboard.press("t")
    saved(screen)
    expect(screen.locator("#lease")).to_be_hidden()


def test_when_the_time_ran_out_the_answers_stay_as_drafts_and_that_is_said(screen: Page) -> None:
    screen.keyboard.press("t")
    saved(screen)
    leave_minutes(screen, -1)
    expect(screen.locator("#lease")).to_contain_text("Your drafts are kept")
    expect(screen.locator("#why")).to_have_text("1 of 4 answered, 3 open")
    screen.get_by_role("button", name="Extend").press("Enter")
    expect(screen.locator("#lease")).to_be_hidden()
    assert answers() == {"polite": True}


def test_the_clock_rests_when_nobody_is_there_and_counts_for_the_open_criterion(screen: Page) -> None:
    held = Assignment.objects.filter(state="leased")
    held.update(taken_at=timezone.now() - timedelta(hours=1))
    screen.clock.install()
    screen.reload()
    ready(screen)
    screen.clock.fast_forward(30_000)
    screen.keyboard.press("j")
    screen.clock.fast_forward(600_000)  # idle: only the first minute of it counts
    screen.keyboard.press("t")
    saved(screen)
    brief = Label.objects.get(criterion__key="brief").active_ms
    assert 59_900 <= brief < 62_000  # a browser rounds its clock
    assert Assignment.objects.get(state="leased").active_ms == brief
    screen.keyboard.press("k")
    screen.keyboard.press("k")
    screen.keyboard.press("t")
    saved(screen)
    assert 30_000 <= Label.objects.get(criterion__key="polite").active_ms < 33_000


def test_the_time_can_be_hidden_and_stays_hidden(screen: Page) -> None:
    clock = screen.locator("#clock")
    expect(clock).to_contain_text("0:0")
    expect(clock).to_have_accessible_name(re.compile(r"^Active time 0:0\d$"))
    clock.press("Enter")
    expect(clock).to_have_text("Show time")
    screen.reload()
    expect(clock).to_have_text("Show time")
    clock.press("Enter")
    expect(clock).to_contain_text(":")
