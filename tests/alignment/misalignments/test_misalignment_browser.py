"""Disagreements triaged in a real browser: by keyboard alone, nothing lost, with axe, narrow and dark."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from alignment.misalignments.worker import misalignments_refresh
from alignment.models.misalignments import Misalignment, MisalignmentCount, Sighting
from labeling.models.people import Role
from tests.browsing import assert_fine, watch
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.rating_screen import sign_in
from tests.factories.rows import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LIST = "/misalignments/?criterion=polite"


def build_compared() -> Compared:
    compared = make_compared()
    misalignments_refresh(compared.run)
    return compared


@pytest.fixture
def console() -> list[str]:
    return []


@pytest.fixture
def triage(
    page: Page, context: BrowserContext, live_server: LiveServer, compared: Compared, console: list[str]
) -> Iterator[Page]:
    """The lead's browser at the list; afterwards the console must be clean."""
    watch(page, console)
    sign_in(context, live_server, make_user("ines", Role.LEAD))
    page.goto(live_server.url + LIST)
    yield page
    assert console == []


def order(page: Page) -> list[int]:
    return [int(row) for row in page.locator(".item").evaluate_all("rows => rows.map(row => row.dataset.id)")]


def saved(page: Page) -> None:
    expect(page.locator("#saving")).to_contain_text("Saved")


def opened(page: Page, item: int) -> None:
    expect(page.locator(f'.one-item[data-item="{item}"]')).to_be_visible()


def test_items_are_triaged_by_keyboard_and_the_focus_stays(triage: Page) -> None:
    first, second, third = order(triage)[:3]
    opened(triage, first)
    triage.keyboard.press("1")
    saved(triage)
    triage.keyboard.press("j")
    opened(triage, second)
    expect(triage.locator(f"#m-{second} a")).to_be_focused()
    triage.keyboard.press("3")
    triage.keyboard.press("o")
    triage.keyboard.press("c")
    expect(triage.locator("#note")).to_be_focused()
    triage.keyboard.type("Is thanks j k 1 enough?")
    triage.keyboard.press("Escape")
    expect(triage.locator(f"#m-{second} a")).to_be_focused()
    saved(triage)
    triage.keyboard.press("j")
    triage.keyboard.press("k")
    opened(triage, second)
    expect(triage.locator("#note")).to_have_value("Is thanks j k 1 enough?")
    expect(triage.locator(".causes [aria-pressed=true]")).to_have_text("Criterion ambiguous 3")
    expect(triage.get_by_role("link", name="Open the criterion’s text and guideline")).to_be_visible()
    expect(triage.locator(f"#m-{first}")).to_contain_text("Judge wrong")
    rows = {row.pk: row for row in Misalignment.objects.select_related("owner")}
    assert (rows[first].cause, rows[first].state) == ("judge", "triaged")
    assert (rows[second].cause, rows[second].note) == ("criterion", "Is thanks j k 1 enough?")
    assert rows[second].owner is not None and rows[third].state == "open"


def test_a_small_run_is_scanned_when_the_page_is_opened(triage: Page, live_server: LiveServer) -> None:
    expect(triage.locator("#thread")).to_be_visible()
    for model in (Sighting, MisalignmentCount, Misalignment):
        model._default_manager.all().delete()
    triage.goto(live_server.url + LIST)
    expect(triage.get_by_role("heading", level=1)).to_have_text("8 disagreements in this filter")
    expect(triage.locator("#scan")).to_have_count(0)
    opened(triage, order(triage)[0])


def test_undo_reverts_the_last_changes_one_by_one(triage: Page) -> None:
    first, second = order(triage)[:2]
    opened(triage, first)
    triage.keyboard.press("2")
    triage.keyboard.press("j")
    opened(triage, second)
    triage.keyboard.press("6")
    triage.keyboard.press("o")
    saved(triage)
    for what in ("owner ines → unassigned", "cause Other → none yet", "cause Label wrong → none yet"):
        triage.keyboard.press("u")
        expect(triage.locator("#saving")).to_contain_text(what)
    expect(triage.locator(f"#m-{first} a")).to_be_focused()
    opened(triage, first)
    expect(triage.locator(".causes [aria-pressed=true]")).to_have_count(0)
    assert {(row.cause, row.owner, row.state) for row in Misalignment.objects.all()} == {("", None, "open")}


def test_the_last_change_can_be_undone_after_a_reload_and_the_history_is_updated(
    triage: Page, console: list[str]
) -> None:
    first, second = order(triage)[:2]
    opened(triage, first)
    triage.keyboard.press("1")
    expect(triage.locator("#saving")).to_have_text("Saved: Judge wrong")
    expect(triage.locator("#history")).to_contain_text("Cause: none yet → Judge wrong")
    triage.reload()
    triage.keyboard.press("j")
    opened(triage, second)
    triage.keyboard.press("u")
    opened(triage, first)
    expect(triage.locator(f"#m-{first} a")).to_be_focused()
    expect(triage.locator(".causes [aria-pressed=true]")).to_have_count(0)
    expect(triage.locator("#history")).to_contain_text("undo")
    triage.keyboard.press("u")
    expect(triage.locator("#saving")).to_have_text(
        "Nothing undone: no change of yours in the last 12 hours can be undone"
    )
    assert Misalignment.objects.get(pk=first).state == "open"
    console.clear()  # the browser tells of the 409


def test_undo_names_a_chat_outside_the_filter(triage: Page, live_server: LiveServer) -> None:
    opened(triage, order(triage)[0])
    triage.keyboard.press("2")
    saved(triage)
    triage.goto(f"{live_server.url}/misalignments/?criterion=wrong_fact")
    triage.get_by_role("button", name="Undo", exact=True).click()
    words = re.compile("^Undone on chat-[0-9]+, Polite: cause Label wrong → none yet$")
    expect(triage.locator("#saving")).to_have_text(words)


def test_g_says_why_there_is_no_next_step(triage: Page) -> None:
    opened(triage, order(triage)[0])
    triage.keyboard.press("g")
    expect(triage.locator("#saving")).to_have_text("Set a cause first")
    triage.keyboard.press("6")
    saved(triage)
    triage.keyboard.press("g")
    expect(triage.locator("#saving")).to_have_text("No next step for this cause. Describe it in the note.")


def test_all_keys_are_listed_and_g_opens_the_next_step(triage: Page) -> None:
    opened(triage, order(triage)[0])
    triage.keyboard.press("?")
    expect(triage.get_by_role("dialog", name="Keys")).to_be_visible()
    triage.keyboard.press("1")  # no key of the list works beneath it
    triage.keyboard.press("Escape")
    expect(triage.get_by_role("dialog", name="Keys")).to_be_hidden()
    expect(triage.locator(".causes [aria-pressed=true]")).to_have_count(0)
    triage.keyboard.press("3")
    saved(triage)
    triage.keyboard.press("g")
    expect(triage).to_have_url(re.compile("/guidelines/criteria/polite/$"))


def test_the_ends_of_the_list_are_announced(triage: Page) -> None:
    ids = order(triage)
    opened(triage, ids[0])
    triage.keyboard.press("k")
    expect(triage.locator("#saving")).to_have_text("First disagreement")
    for one in ids[1:]:
        triage.keyboard.press("j")
        opened(triage, one)
    triage.keyboard.press("j")
    expect(triage.locator("#saving")).to_have_text("Last disagreement")


def test_a_failed_change_is_kept_announced_and_sent_again(triage: Page, console: list[str]) -> None:
    first, second = order(triage)[:2]
    opened(triage, first)
    triage.route("**/api/misalignments/**", lambda route: route.abort())
    triage.keyboard.press("4")
    expect(triage.locator("#trouble")).to_contain_text("The server can’t be reached. Try again.")
    triage.keyboard.press("j")
    opened(triage, second)
    triage.keyboard.press("5")
    triage.unroute("**/api/misalignments/**")
    saved(triage)
    expect(triage.locator("#trouble")).to_be_hidden()
    causes = dict(Misalignment.objects.values_list("pk", "cause"))
    assert (causes[first], causes[second]) == ("knowledge", "injection")
    console.clear()  # the browser tells of the request that was cut


def test_a_conflicting_change_is_announced_and_kept(triage: Page, console: list[str]) -> None:
    first = order(triage)[0]
    opened(triage, first)
    otto = make_user("otto", Role.AUTHOR)
    Misalignment.objects.filter(pk=first).update(cause="label", state="triaged", revision=1, changed_by=otto)
    triage.keyboard.press("c")
    triage.keyboard.type("Mine")
    triage.keyboard.press("Escape")
    expect(triage.locator("#trouble")).to_contain_text("otto changed this disagreement")
    expect(triage.locator("#trouble")).to_contain_text("Your note was: Mine")
    expect(triage.locator(".causes [aria-pressed=true]")).to_have_text("Label wrong 2")
    triage.keyboard.press("1")
    saved(triage)
    row = Misalignment.objects.get(pk=first)
    assert (row.cause, row.note) == ("judge", "")
    console.clear()  # the browser tells of the 409


def test_text_typed_while_a_cause_is_saved_is_not_lost(triage: Page) -> None:
    held: list[Route] = []
    first = order(triage)[0]
    opened(triage, first)
    triage.route("**/api/misalignments/**", lambda route: held.append(route))
    triage.keyboard.press("1")
    triage.keyboard.press("c")
    triage.keyboard.type("Half a")
    held[0].continue_()
    saved(triage)
    triage.unroute("**/api/misalignments/**")
    triage.keyboard.type(" note")
    triage.keyboard.press("Control+Enter")
    expect(triage.locator(f"#m-{first}")).to_have_attribute("data-revision", "2")
    assert Misalignment.objects.get(pk=first).note == "Half a note"


@pytest.mark.usefixtures("each_scheme")
def test_the_page_is_accessible_and_fits(triage: Page) -> None:
    triage.keyboard.press("1")
    saved(triage)
    assert_fine(triage, every_impact=True)


def test_a_cause_and_its_undo_change_the_counts_without_a_reload(
    triage: Page, live_server: LiveServer
) -> None:
    triage.goto(f"{live_server.url}{LIST}&cause=none")
    first, second = order(triage)[:2]
    opened(triage, first)
    triage.evaluate("window.sameDocument = true")
    heading, causes = triage.get_by_role("heading", level=1), triage.locator("#cause-rows")
    expect(heading).to_have_text("8 disagreements in this filter")
    triage.keyboard.press("1")
    expect(heading).to_have_text("7 disagreements in this filter")
    expect(causes).to_have_text(re.compile(r"^\s*Polite\s+8\s+1\s"))
    triage.keyboard.press("j")
    opened(triage, second)
    triage.keyboard.press("2")
    expect(heading).to_have_text("6 disagreements in this filter")
    expect(triage.locator(f"#m-{second} a")).to_be_focused()
    triage.keyboard.press("u")
    expect(heading).to_have_text("7 disagreements in this filter")
    assert triage.evaluate("window.sameDocument") is True


def test_a_conflicting_change_of_another_reader_is_counted(triage: Page, console: list[str]) -> None:
    first = order(triage)[0]
    opened(triage, first)
    expect(triage.locator("#count")).to_contain_text("0 of 8 triaged")
    Misalignment.objects.filter(pk=first).update(cause="label", state="triaged", revision=1)
    triage.keyboard.press("1")
    expect(triage.locator("#count")).to_contain_text("1 of 8 triaged")
    console.clear()  # the browser tells of the 409
