"""The circle of daily work in a real browser: from a rater's label to the released prompt that mends it.

Everybody goes by links and keys alone; the clicks that the daily work costs are counted.
"""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from alignment.misalignments.worker import disagreements_sweep
from alignment.models.misalignments import Misalignment
from alignment.models.regressions import RegressionTest
from evaluation.models.runs import Run
from evaluation.prompts.services.versions import champions_ensure
from labeling.consensus.services.consensus import consensus_refresh
from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import Label
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from tests.browsing import Hands, apart, sign_in, watch
from tests.factories import tries
from tests.factories.gate_reference import MARK, carried_out, judging, make_golden
from tests.factories.prompt_pages import SAVED
from tests.factories.rating_screen import question, saved
from tests.factories.rows import make_rater, make_user
from tests.factories.runs import answering, command
from tests.stub_endpoint import StubEndpoint

pytestmark = [pytest.mark.browser, pytest.mark.heavy, pytest.mark.django_db(transaction=True)]

CHAT = "g0"  # the one that the rater labels, and on which the judge errs
MOST_CLICKS = 8  # of the author, from the inbox to a tested version


@pytest.fixture
def stub(settings: Settings) -> Iterator[StubEndpoint]:
    """A judge that errs on the first chat, unless the prompt tells it to look twice."""
    with answering(settings, judging(champion=1, wrong={MARK: 0})) as endpoint:
        yield endpoint


@pytest.fixture
def golden(transactional_db: None, stub: StubEndpoint) -> ChatSet:
    """A labelled set, but for the first chat: that one is the rater's to label."""
    chat_set = make_golden()
    criterion, first = Criterion.objects.get(), Chat.objects.get(external_id=CHAT)
    champions_ensure(criteria=[criterion], by=None)
    Label.objects.filter(chat=first).delete()
    consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[first.pk])
    rater = make_rater("mara", user=make_user("mara", Role.RATER))
    job_open(chat_set=chat_set, name="May", criteria=[criterion], raters=[rater], overlap=1, by=None)
    return chat_set


@pytest.fixture
def browser(page: Page) -> Iterator[Page]:
    """On no page yet; afterwards the console must be clean."""
    console: list[str] = []
    watch(page, console)
    yield page
    assert console == []


def arrive(page: Page, live_server: LiveServer, user: User) -> Hands:
    """Signed in, on the first page: the only address that anybody types."""
    page.context.clear_cookies()
    sign_in(page.context, live_server.url, user)
    page.goto(live_server.url)
    return Hands(page)


def judged() -> None:
    """A run over the whole set with the released prompts, scanned for disagreements."""
    apart(command, "evaluate", "--set", "golden", "--profile", "default")
    apart(disagreements_sweep)


# ---------- the rater ----------


def label_by_keys(rater: Hands) -> None:
    """Open the next chat, mark its second turn and answer."""
    page = rater.page
    page.get_by_role("button", name="Start chat 1", exact=True).focus()
    rater.press("Enter")
    expect(question(page)).to_have_text("Is polite so?")
    for key in "e2et":
        rater.press(key)
    saved(page)
    rater.press("Control+Enter")
    expect(page.locator("main")).not_to_contain_text(f"case {CHAT}:")


# ---------- the lead ----------


def open_report(lead: Hands) -> None:
    page = lead.page
    lead.click(page.get_by_role("link", name="Reports", exact=True))
    lead.click(page.get_by_role("link", name=f"Run {Run.objects.latest('pk').pk}").first)
    expect(page.get_by_role("heading", level=1)).to_have_text("Alignment report")


def read_the_message(lead: Hands) -> None:
    """From the number of the report through its list of chats to the turn that the rater marked."""
    page = lead.page
    lead.click(page.get_by_role("link", name="1 disagreement, polite"))
    lead.click(page.locator(".disc").get_by_role("link"))
    lead.click(page.locator(".label-cards").get_by_role("link", name="turn 2"))
    expect(page.locator(".turn:target")).to_be_in_viewport()


def triage(lead: Hands) -> None:
    lead.press("1")
    expect(lead.page.locator("#saving")).to_have_text("Saved: Judge wrong")


def hand_over(lead: Hands) -> None:
    lead.choose(lead.page.locator("[data-owner-choice]"), "otto")
    expect(lead.page.locator("#saving")).to_have_text("Saved: owner otto")


def go_back(lead: Hands) -> None:
    lead.click(lead.page.get_by_role("link", name="← Back to the list of chats"))
    expect(lead.page.locator("h1")).to_have_text(re.compile("^False alarm"))


# ---------- the author ----------


def open_inbox(who: Hands) -> None:
    inbox = who.page.get_by_role("link", name=re.compile("^Inbox"))
    expect(inbox.locator(".badge")).to_have_text(re.compile(r"^1\s+unread$"))
    who.click(inbox)
    expect(who.page.get_by_role("heading", level=1)).to_have_text("Inbox")


def open_item(who: Hands, subject: str) -> None:
    who.click(who.page.get_by_role("button", name=f"Open {subject}"))


def edit_the_prompt(author: Hands) -> None:
    page = author.page
    author.click(page.get_by_role("link", name="Refine the prompt"))
    style = page.get_by_label("Style", exact=True)
    author.click(style)
    author.press("Control+End")
    page.keyboard.type(f" {MARK}")
    expect(page.locator("#save")).to_have_text(SAVED)


def try_it_on_the_pinned_chat(author: Hands) -> None:
    page = author.page
    expect(page.locator("#bench h3").first).to_have_text("Pinned, 1")
    pinned = page.locator(".try-chat").first
    expect(pinned).to_contain_text(CHAT)
    author.click(pinned.get_by_role("button", name="Run one"))
    expect(page.locator("#try-progress")).to_contain_text("still to run")
    apart(tries.carried_out, Run.objects.get(purpose="try", state="running"))
    expect(pinned.locator(".tag.fixed")).to_have_text("Fixed")


def save_as_version(author: Hands) -> None:
    page = author.page
    author.click(page.get_by_role("button", name="Save as version 2"))
    page.keyboard.type("It reads twice")
    author.click(page.get_by_role("button", name="Save version 2"))
    page.wait_for_url("**/criteria/polite/versions/2/")


def run_its_test(author: Hands) -> None:
    page = author.page
    author.click(page.locator(".actions").get_by_role("link", name="Test version 2"))
    author.click(page.get_by_role("button", name="Start test"))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("Version 2 against champion version 1")
    apart(carried_out, RegressionTest.objects.get())
    expect(heading).to_contain_text("Pass")


def ask_for_a_release(author: Hands) -> None:
    page = author.page
    author.click(page.get_by_text("Ask for a release…"))
    page.get_by_label("Note to the leads").fill("It reads better.")
    author.click(page.get_by_role("button", name="Ask for a release"))
    expect(page.locator(".toast")).to_contain_text("Asked.")


# ---------- the lead, again ----------


def release_it(lead: Hands) -> None:
    page = lead.page
    expect(page.locator(".requests")).to_contain_text("It reads better.")
    lead.click(page.get_by_role("button", name="Release v2"))
    expect(page.locator(".toast")).to_contain_text("Released.")


def read_the_criterion(lead: Hands) -> None:
    page = lead.page
    lead.click(page.locator(".facts").get_by_role("link", name="polite"))
    expect(page.locator(".facts")).to_contain_text("version 2 since")
    expect(page.locator("main")).to_contain_text("1 open disagreement to triage")


def read_that_nothing_is_left(lead: Hands) -> None:
    """The report of the run with the released version, and the criterion."""
    page = lead.page
    open_report(lead)
    expect(page.get_by_role("link", name="disagreements, polite")).to_have_count(0)
    lead.click(page.locator("#r-polite").get_by_role("link", name="Polite", exact=True))
    expect(page.locator("#versions .cur")).to_contain_text(re.compile(r"Version 2\s+Released\s+Run"))


def read_how_it_was_closed(author: Hands) -> None:
    """No own disagreement is open; the answered request and the closed item say what became of them."""
    page = author.page
    open_inbox(author)
    expect(page.get_by_role("link", name=re.compile("^Mine"))).to_have_count(0)
    expect(page.locator(".mails .new")).to_contain_text(re.compile("Polite version 2, test"))
    open_item(author, f"{CHAT}, polite")
    expect(page.locator(".triage-state")).to_contain_text("closed by version 2")


# ---------- the circle ----------


def counted(hands: Hands, do: Callable[[Hands], None]) -> int:
    """How many clicks and keys this took."""
    before = hands.clicks + hands.keys
    do(hands)
    return hands.clicks + hands.keys - before


def to_a_tested_version(author: Hands) -> None:
    open_item(author, f"{CHAT}, polite")
    edit_the_prompt(author)
    try_it_on_the_pinned_chat(author)
    save_as_version(author)
    run_its_test(author)


def test_a_label_becomes_a_better_prompt_and_the_disagreement_is_closed(
    browser: Page, live_server: LiveServer, golden: ChatSet
) -> None:
    page, mara = browser, User.objects.get(username="mara")
    ines, otto = make_user("ines", Role.LEAD), make_user("otto", Role.AUTHOR)
    label_by_keys(arrive(page, live_server, mara))
    judged()

    lead = arrive(page, live_server, ines)
    open_report(lead)
    assert counted(lead, read_the_message) == 3
    assert counted(lead, triage) == 1
    assert counted(lead, hand_over) == 1
    assert counted(lead, go_back) == 1

    author = arrive(page, live_server, otto)
    open_inbox(author)
    before = author.clicks
    to_a_tested_version(author)
    assert author.clicks - before <= MOST_CLICKS
    ask_for_a_release(author)

    lead = arrive(page, live_server, ines)
    open_inbox(lead)
    open_item(lead, "polite version 2, test")
    release_it(lead)
    read_the_criterion(lead)

    judged()
    item = Misalignment.objects.get()
    assert (item.state, item.closed_by, item.owner) == ("closed", "version", otto)
    read_that_nothing_is_left(arrive(page, live_server, ines))
    read_how_it_was_closed(arrive(page, live_server, otto))
