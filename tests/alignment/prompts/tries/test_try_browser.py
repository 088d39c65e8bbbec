"""An author in the editor, in a real browser: chats beside the text that stream in; the exact messages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from evaluation.models.runs import Run
from labeling.models.chats import Chat
from labeling.models.people import Role, User
from tests.browsing import apart, faults, watch
from tests.factories.rating_screen import sign_in
from tests.factories.rows import make_user
from tests.factories.tries import MARK, carried_out, drafted, labelled
from tests.stub_endpoint import StubEndpoint

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def otto(try_stub: StubEndpoint, tmp_path: Path) -> User:
    apart(labelled, tmp_path)
    user = make_user("otto", Role.AUTHOR)
    drafted(user)
    return user


@pytest.fixture
def bench(context: BrowserContext, page: Page, live_server: LiveServer, otto: User) -> Iterator[Page]:
    problems: list[str] = []
    watch(page, problems)
    sign_in(context, live_server, otto)
    page.goto(f"{live_server.url}/criteria/polite/prompt/")
    expect(page.locator("#try-estimate")).to_contain_text("5 chats")
    yield page
    assert problems == []


def finish() -> None:
    for run in Run.objects.filter(purpose="try", state="running"):
        apart(carried_out, run)


@pytest.mark.heavy
def test_the_exact_messages_unfold_by_keyboard_and_stay_so(bench: Page) -> None:
    bench.get_by_role("button", name="Rendered prompt").click()
    fold = bench.locator("#role-of-direct-0")
    fold.focus()
    bench.keyboard.press("Enter")
    expect(bench.locator("#role-direct-0 pre").first).to_contain_text(MARK)
    first = bench.locator("#exact b").first.inner_text()
    bench.locator("#rendered-chat").select_option(index=2)
    expect(bench.locator("#exact b").first).not_to_have_text(first)
    expect(bench.locator("#role-direct-0 pre").first).to_be_visible()
    assert faults(bench) == []


@pytest.mark.flow
def test_chats_stream_in_beside_the_text_and_are_there_after_a_reload(bench: Page) -> None:
    bench.get_by_role("button", name="Run all 5").focus()
    bench.keyboard.press("Enter")
    expect(bench.locator("#try-progress")).to_contain_text("5 of 5 still to run")
    finish()
    expect(bench.locator(".try-chat .tag", has_text="Fixed")).to_have_count(2)
    expect(bench.locator(".try-chat .tag", has_text="Still wrong")).to_have_count(1)
    expect(bench.locator(".try-chat .tag", has_text="Still right")).to_have_count(2)
    expect(bench.locator("#try-progress")).to_contain_text("the draft on 4 of 5 run so far")
    first = bench.locator(".try-chat details").first
    first.locator("summary").focus()
    bench.keyboard.press("Enter")
    expect(first).to_contain_text("Verdict read by rule")
    assert faults(bench) == []
    bench.wait_for_load_state("networkidle")
    bench.reload()
    expect(bench.locator("#try-progress")).to_contain_text("the draft on 4 of 5 run so far")
    bench.get_by_label("Tone", exact=True).fill("Calm.")
    expect(bench.locator(".try-chat", has_text="earlier draft")).to_have_count(5)


@pytest.mark.heavy
def test_one_chat_runs_alone_and_all_run_with_a_save_if_that_is_wanted(bench: Page) -> None:
    card = bench.locator(".try-chat").nth(1)
    card.get_by_role("button", name="Run one").press("Enter")
    expect(bench.locator("#try-progress")).to_contain_text("1 of 5 still to run")
    finish()
    expect(card).to_contain_text("Whole answer")
    expect(bench.locator(".try-chat", has_text="Not run")).to_have_count(4)
    bench.get_by_label("Run all when I save").check()
    bench.get_by_label("Tone", exact=True).fill("Calm.")
    bench.keyboard.press("Control+s")
    expect(bench.locator("#try-progress")).to_contain_text("5 of 5 still to run")
    assert Run.objects.filter(purpose="try", state="running").get().run_chats.count() == 5


@pytest.mark.heavy
def test_a_link_pins_its_chats_and_a_reload_none_again(bench: Page) -> None:
    chat = Chat.objects.get(external_id="c-09")
    bench.goto(f"{bench.url}?pin={chat.pk}")
    expect(bench.locator(".try-chat").first).to_contain_text("c-09")
    expect(bench).not_to_have_url(re.compile("pin="))
    bench.get_by_role("button", name="Unpin c-09").click()
    expect(bench.get_by_role("button", name="Unpin c-09")).to_have_count(0)
    bench.reload()
    expect(bench.locator("#try-estimate")).to_contain_text("5 chats")
    expect(bench.get_by_role("heading", name="Pinned")).to_have_count(0)


@pytest.mark.heavy
def test_a_chat_is_pinned_by_its_id_and_open_tries_are_cancelled(bench: Page) -> None:
    bench.get_by_text("Pin a chat", exact=True).click()
    bench.get_by_label("Id or words of a train or dev chat").fill("c-11")
    bench.locator("#chats-found").get_by_role("button", name="Pin c-11").click()
    expect(bench.locator(".try-chat").first).to_contain_text("c-11")
    expect(bench.locator("#try-estimate")).to_contain_text("6 chats")
    bench.get_by_role("button", name="Run all 6").click()
    bench.get_by_role("button", name="Cancel", exact=True).press("Enter")
    expect(bench.locator("#try-progress")).not_to_contain_text("still to run")
    assert Run.objects.get(purpose="try").state == "cancelled"
