"""The rating screen in a real browser: autosave, undo, offline answers, a lost lease."""

import json
import uuid
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, Route, expect

from labeling.models.labels import Assignment, Label, LabelRevision
from labeling.models.people import Workspace
from labeling.rating.services.leases import assignment_next
from tests.factories.labelling_job import Desk, expire
from tests.factories.rating_screen import answers, chosen, question, saved

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


# ---------- undo ----------


def test_undo_and_redo_go_twenty_steps_and_write_history(screen: Page) -> None:
    for step in range(20):
        screen.keyboard.press("t" if step % 2 else "f")
        screen.keyboard.press("k")
    expect(question(screen)).to_have_text("Is polite so?")
    for _ in range(19):
        screen.keyboard.press("u")
    expect(chosen(screen)).to_have_attribute("value", "false")
    screen.keyboard.press("Control+z")
    expect(chosen(screen)).to_have_count(0)
    expect(screen.locator("#said")).to_contain_text("Undone")
    screen.keyboard.press("Shift+Z")
    expect(chosen(screen)).to_have_attribute("value", "false")
    saved(screen)
    assert answers() == {"polite": False}
    assert LabelRevision.objects.count() == LabelRevision.objects.latest("number").number > 2


def test_undo_survives_a_reload(screen: Page) -> None:
    screen.keyboard.press("t")
    saved(screen)
    screen.reload()
    screen.keyboard.press("u")
    saved(screen)
    assert answers() == {}
    assert Label.objects.get().state == "cleared"


def test_what_another_database_left_in_the_browser_is_not_taken_over(screen: Page) -> None:
    """Its chat had the same id: neither its answers nor its undo steps may reach this one."""
    kept = {"answered": True, "value": False, "rationale": "of another chat", "evidence": []}
    left = {
        "pending": {"brief": {"client_id": str(uuid.uuid4()), "answer": kept, "active_ms": 0}},
        "loose": {},
        "undo": [{"key": "polite", "before": kept, "after": kept}],
        "redo": [],
    }
    leave_in_browser(screen, f"lace-rate-{Assignment.objects.get(state='leased').pk}", left)
    expect(screen.locator("#why")).to_have_text("0 of 4 answered, 4 open")
    screen.keyboard.press("u")
    expect(screen.locator("#said")).to_have_text("Nothing to undo")
    screen.keyboard.press("t")
    saved(screen)
    assert answers() == {"polite": True}
    assert Label.objects.get().rationale == ""


def leave_in_browser(screen: Page, key: str, kept: dict[str, Any]) -> None:
    """Put it there from another page: the rating screen writes its own when it is left."""
    here = screen.url
    screen.goto(here[: here.index("/rate/")] + reverse("labeling:queue"))
    screen.evaluate("([key, kept]) => localStorage.setItem(key, kept)", [key, json.dumps(kept)])
    screen.goto(here)


def test_answers_kept_for_one_workspace_wait_for_it_and_reach_no_other(
    screen: Page, problems: list[str]
) -> None:
    refuse = "**/api/assignments/*/labels/**"
    screen.route(refuse, lambda route: route.abort())
    screen.keyboard.press("f")
    expect(screen.locator("#save")).to_have_text("Offline, 1 in this browser, retrying")
    own = bytes(Workspace.current().fence_secret)
    Workspace.objects.update(fence_secret=b"another database".ljust(32))
    screen.on("dialog", lambda dialog: dialog.accept())
    screen.reload()
    screen.unroute(refuse)
    expect(screen.locator("#why")).to_have_text("0 of 4 answered, 4 open")
    assert not Label.objects.exists()
    Workspace.objects.update(fence_secret=own)
    screen.reload()
    saved(screen)
    assert answers() == {"polite": False}
    problems[:] = [text for text in problems if "ERR_FAILED" not in text]


# ---------- saving ----------


def test_saved_answers_survive_a_reload(screen: Page) -> None:
    screen.keyboard.press("t")
    screen.keyboard.press("f")
    saved(screen)
    screen.reload()
    expect(question(screen)).to_have_text("Is honest so?")
    expect(screen.locator(".crit .ans:visible")).to_have_text(["True", "False", "open"])
    expect(screen.locator("#why")).to_have_text("2 of 4 answered, 2 open")


def test_answers_given_offline_are_kept_retried_and_survive_a_reload(
    screen: Page, problems: list[str]
) -> None:
    refuse = "**/api/assignments/*/labels/**"
    screen.route(refuse, lambda route: route.abort())
    screen.keyboard.press("t")
    screen.keyboard.press("f")
    screen.keyboard.press("t")
    expect(screen.locator("#save")).to_have_text("Offline, 3 in this browser, retrying")
    assert not Label.objects.exists()
    screen.once("dialog", lambda dialog: dialog.accept())
    screen.reload()
    expect(screen.locator("#why")).to_have_text("3 of 4 answered, 1 open")
    screen.unroute(refuse)
    screen.evaluate("dispatchEvent(new Event('online'))")
    saved(screen)
    assert answers() == {"polite": True, "brief": False, "honest": True}
    problems[:] = [text for text in problems if "ERR_FAILED" not in text]


def test_leaving_with_unsaved_answers_warns(screen: Page, problems: list[str]) -> None:
    screen.route("**/api/assignments/*/labels/**", lambda route: route.abort())
    screen.keyboard.press("t")
    expect(screen.locator("#save")).to_contain_text("Offline")
    kinds: list[str] = []

    def leave(dialog: Any) -> None:
        kinds.append(dialog.type)
        dialog.accept()

    screen.on("dialog", leave)
    screen.goto("about:blank")
    assert kinds == ["beforeunload"]
    problems[:] = [text for text in problems if "ERR_FAILED" not in text]


def test_an_answer_whose_reply_got_lost_is_not_saved_twice(screen: Page, problems: list[str]) -> None:
    replies = 0

    def lose_first(route: Route) -> None:
        nonlocal replies
        replies += 1
        if replies == 1:
            route.fetch()  # the server gets it, the page never hears of it
            route.abort()
        else:
            route.continue_()

    screen.route("**/api/assignments/*/labels/**", lose_first)
    screen.keyboard.press("t")
    expect(screen.locator("#save")).to_contain_text("Offline")
    saved(screen)
    assert (Label.objects.count(), LabelRevision.objects.count()) == (1, 1)
    problems[:] = [text for text in problems if "ERR_FAILED" not in text]


def test_a_lost_lease_stops_the_work_and_keeps_the_answer_here(
    screen: Page, desk: Desk, problems: list[str]
) -> None:
    screen.keyboard.press("t")
    saved(screen)
    Assignment.objects.filter(state="open").delete()
    expire(Assignment.objects.get())
    assert assignment_next(rater=desk.raters[1], job=desk.job) is not None
    screen.keyboard.press("f")
    expect(screen.get_by_role("alert").locator("visible=true")).to_contain_text("another rater has it now")
    expect(screen.locator("#save")).to_have_text("Not saved, 1 in this browser")
    expect(screen.locator("#submit")).to_be_disabled()
    assert answers() == {"polite": True}
    problems[:] = [text for text in problems if "409" not in text]
