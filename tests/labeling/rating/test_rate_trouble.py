"""The rating screen where the server says no: signed out, refused answers, errors of the server."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from labeling.models.chats import Chat
from labeling.models.labels import Assignment, Label
from labeling.models.people import Workspace
from tests.factories.api_calls import signed_in
from tests.factories.labelling_job import Desk, answer_all, user_of
from tests.factories.rating_screen import answers, forgive, question, ready, saved

pytestmark = [pytest.mark.browser, pytest.mark.heavy, pytest.mark.django_db(transaction=True)]

LABELS = "**/api/assignments/*/labels/**"


class Session:
    """The rater's sign-in, which can be taken away and given back."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.cookies = page.context.cookies()

    def end(self) -> None:
        self.page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)

    def again(self) -> None:
        self.page.context.add_cookies(self.cookies)  # type: ignore[arg-type]
        self.page.evaluate("dispatchEvent(new Event('focus'))")


@pytest.fixture
def session(screen: Page) -> Session:
    return Session(screen)


@pytest.fixture
def correcting(screen: Page, desk: Desk) -> Page:
    """A submitted chat, all True, under the rule that every False needs evidence."""
    assignment = Assignment.objects.get(state="leased")
    answer_all(assignment)
    url = reverse("api_submit", args=[assignment.pk])
    assert signed_in(user_of(desk.rater)).post(url, content_type="application/json").status_code == 200
    Workspace.objects.update(evidence_on_false=True)
    screen.reload()
    expect(screen.locator("#save")).to_have_text("Saved")
    return screen


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server gives up waiting for a lock of the database at once."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.1)


# ---------- signed out ----------


def test_a_rater_who_is_signed_out_is_warned_and_continues_where_they_were(
    screen: Page, session: Session, problems: list[str]
) -> None:
    session.end()
    screen.keyboard.press("t")
    expect(screen.locator("#save")).to_have_text("Signed out, 1 in this browser")
    expect(screen.locator("#signed-out")).to_be_visible()
    session.again()
    saved(screen)
    expect(screen.locator("#signed-out")).to_be_hidden()
    assert answers() == {"polite": True}
    forgive(problems, "401", "403")


def test_signing_in_again_returns_to_the_chat_and_sends_the_answers(
    screen: Page, session: Session, desk: Desk, problems: list[str]
) -> None:
    chat = screen.url
    screen.keyboard.press("t")
    saved(screen)
    account = user_of(desk.rater)
    account.set_password("a long password")
    account.save()
    session.end()
    screen.keyboard.press("c")
    screen.keyboard.type("On second thought")
    screen.keyboard.press("Escape")
    screen.keyboard.press("t")
    expect(screen.locator("#save")).to_contain_text("Signed out")
    screen.locator("#signed-out").get_by_role("link", name="Sign in").press("Enter")
    screen.get_by_label("User name or e-mail").fill(account.username)
    screen.get_by_label("Password").fill("a long password")
    screen.get_by_role("button", name="Sign in", exact=True).press("Enter")
    expect(screen).to_have_url(chat)
    saved(screen)
    assert answers() == {"polite": True, "brief": True}
    assert Label.objects.get(criterion__key="brief").rationale == "On second thought"
    forgive(problems, "401", "403")


def test_submitting_and_extending_while_signed_out_stop_nothing(
    screen: Page, session: Session, problems: list[str]
) -> None:
    for key in "tttt":
        screen.keyboard.press(key)
    saved(screen)
    held = Assignment.objects.filter(state="leased")
    held.update(lease_expires_at=timezone.now() + timedelta(minutes=1))
    screen.reload()
    session.end()
    screen.locator("#lease").get_by_role("button", name="Extend").press("Enter")
    expect(screen.locator("#said")).to_contain_text("Not extended: You are signed out")
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("#said")).to_contain_text("Not submitted: You are signed out")
    expect(screen.locator("#signed-out")).to_be_visible()
    expect(screen.locator("#stopped")).to_be_hidden()
    session.again()
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("h1")).to_contain_text("chat-2")
    forgive(problems, "401", "403")


def test_an_error_of_the_server_is_not_called_offline(screen: Page, problems: list[str]) -> None:
    screen.route(LABELS, lambda route: route.fulfill(status=503))
    screen.keyboard.press("t")
    expect(screen.locator("#save")).to_have_text("Server trouble, 1 in this browser, retrying")
    screen.unroute(LABELS)
    saved(screen)
    forgive(problems, "503")


def test_answers_wait_here_while_the_database_is_locked_and_are_saved_by_themselves(
    short_waits: None, screen: Page, problems: list[str]
) -> None:
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
        other.execute("BEGIN IMMEDIATE")
        screen.keyboard.press("t")
        expect(screen.locator("#save")).to_have_text("Server trouble, 1 in this browser, retrying")
        assert answers() == {}
    saved(screen)
    assert answers() == {"polite": True}
    forgive(problems, "503")


def test_trouble_with_saving_is_announced_once_and_so_is_its_end(screen: Page, problems: list[str]) -> None:
    heard = screen.locator("#announcement")
    expect(heard).to_have_attribute("role", "status")
    screen.keyboard.press("t")
    saved(screen)
    expect(heard).to_be_empty()
    screen.route(LABELS, lambda route: route.abort())
    screen.keyboard.press("f")
    expect(heard).to_have_text("Not saved")
    screen.unroute(LABELS)
    saved(screen)
    expect(heard).to_have_text("Saved")
    forgive(problems, "ERR_FAILED")


# ---------- answers that are not taken ----------


def test_a_refused_answer_is_marked_until_it_is_changed(screen: Page, problems: list[str]) -> None:
    screen.route(LABELS, lambda route: route.fulfill(status=400, json={"value": ["Not so."]}))
    screen.keyboard.press("t")
    expect(screen.locator("#save")).to_have_text("Not saved: an answer was refused")
    expect(screen.get_by_role("alert").locator("visible=true")).to_contain_text(
        "Polite is not saved: Not so."
    )
    expect(screen.locator(".crit .ans").first).to_have_text("True, not saved")
    for key in "ttt":
        screen.keyboard.press(key)
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("#said")).to_contain_text("answers are not saved yet")
    screen.unroute(LABELS)
    for n in range(4):
        screen.locator(".crit").nth(n).evaluate("row => row.click()")
        screen.keyboard.press("f")
    saved(screen)
    expect(screen.locator(".settle")).to_have_count(0)
    assert set(answers().values()) == {False}
    forgive(problems, "400")


def test_a_correction_against_the_rules_waits_here_and_says_so(correcting: Page) -> None:
    correcting.keyboard.press("f")
    expect(correcting.locator("#save")).to_have_text("Not saved: evidence missing")
    expect(correcting.locator("#why")).to_have_text("Evidence is missing: Polite")
    here = correcting.url
    correcting.keyboard.press("Control+Enter")
    expect(correcting.locator("#said")).to_contain_text("Evidence is missing: Polite")
    assert correcting.url == here
    correcting.once("dialog", lambda dialog: dialog.accept())
    correcting.reload()
    expect(correcting.locator("#save")).to_have_text("Not saved: evidence missing")
    assert Label.objects.get(criterion__key="polite").value is True
    for key in ("k", "j", "e", "Space", "e"):
        correcting.keyboard.press(key)
    saved(correcting)
    polite = Label.objects.get(criterion__key="polite")
    assert (polite.value, polite.evidence) == (False, [{"n": 1}])


def test_undoing_a_correction_against_the_rules_leaves_nothing_unsaved(correcting: Page) -> None:
    correcting.keyboard.press("f")
    correcting.keyboard.press("u")
    saved(correcting)
    assert Label.objects.get(criterion__key="polite").value is True


def test_evidence_of_any_length_is_saved(screen: Page, desk: Desk) -> None:
    """The browser refuses bodies over 64 KiB that may outlive the page."""
    long = [{"n": 1, "role": "user", "content": "word " * 14_000}]
    Chat.objects.filter(pk=desk.chats[0].pk).update(messages=long, message_count=1)
    screen.reload()
    ready(screen)
    screen.evaluate("getSelection().selectAllChildren(document.querySelector('#m1 .md'))")
    screen.keyboard.press("e")
    expect(screen.locator(".ev:visible")).to_have_count(1)
    screen.keyboard.press("c")
    screen.locator("textarea:visible").fill("字" * 10_000)
    screen.keyboard.press("Escape")
    screen.keyboard.press("t")
    saved(screen)
    label = Label.objects.get()
    assert len(label.evidence[0]["quote"]) == 14_000 * 5 - 1
    assert len(label.rationale) == 10_000


# ---------- chats that are not the rater's any more ----------


def test_a_chat_of_a_closed_job_says_so_at_once(screen: Page, desk: Desk) -> None:
    screen.keyboard.press("t")
    saved(screen)
    type(desk.job).objects.update(state="closed")
    screen.reload()
    expect(screen.get_by_role("alert").locator("visible=true")).to_contain_text("job is closed")
    screen.keyboard.press("t")
    expect(question(screen)).to_have_text("Is brief so?")
    assert answers() == {"polite": True}
