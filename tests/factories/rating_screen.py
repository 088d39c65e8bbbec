"""What the tests of the rating screen share: a signed-in browser on the first chat, and how to read it."""

import re
import uuid
from typing import Any

from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.labels import Assignment, Label
from labeling.models.people import User
from labeling.rating.services.answers import label_save
from tests import browsing
from tests.factories.labelling_job import Desk

KEYS = ("polite", "brief", "honest", "correct")  # the last one may be "not applicable"
# Moves are not counted: the browser reports one by itself when a page changes below the pointer.
COUNT_MOUSE = """for (const kind of ["mousedown", "mouseup", "pointerdown", "wheel"])
    addEventListener(kind, () => {
        sessionStorage.setItem("mouse", Number(sessionStorage.getItem("mouse")) + 1);
    }, true);"""


def sign_in(context: BrowserContext, live_server: LiveServer, user: User) -> None:
    browsing.sign_in(context, live_server.url, user)


def no_chat_ahead(page: Page) -> None:
    """The next chat is loaded only when it is wanted, as where no other chat is free."""
    page.route("**/api/jobs/*/next/", lambda route: route.fulfill(json={"assignment": None, "url": ""}))


def ready(page: Page) -> None:
    """The script of a chat without answers runs."""
    expect(page.locator("#save")).to_have_text("Saves as you answer")


def saved(page: Page) -> None:
    expect(page.locator("#save")).to_have_text(re.compile(r"^Saved \d\d:\d\d$"))


def question(page: Page) -> Any:
    """The legend of the open criterion; there is always exactly one."""
    return page.locator("form.open:not([hidden]) legend")


def chosen(page: Page) -> Any:
    """The chosen answer of the open criterion."""
    return page.locator(".choice [aria-pressed=true]:visible")


def answers() -> dict[str, bool | None]:
    return dict(Label.objects.filter(state__in=["draft", "submitted"]).values_list("criterion__key", "value"))


def save_elsewhere(desk: Desk, *, value: bool, criterion: int = 0) -> None:
    """By another computer, of which this browser hears nothing."""
    assignment = Assignment.objects.get(state="leased")
    asked = desk.criteria[criterion]
    label_save(assignment=assignment, rater=desk.rater, criterion=asked, value=value, client_id=uuid.uuid4())


def forgive(problems: list[str], *causes: str) -> None:
    """Failed requests that the test asked for are no problem."""
    problems[:] = [text for text in problems if not any(cause in text for cause in causes)]


def watch_mouse(page: Page) -> None:
    """Count what the mouse does from now on, on this page and those that follow; see `mouse_uses`."""
    page.evaluate(COUNT_MOUSE)
    page.add_init_script(COUNT_MOUSE)


def mouse_uses(page: Page) -> int:
    """How often a button or the wheel was used since `watch_mouse`."""
    return int(page.evaluate('Number(sessionStorage.getItem("mouse"))'))
