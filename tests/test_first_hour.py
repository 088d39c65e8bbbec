"""A newcomer's first hour by pages alone, from no account to a tested prompt, on the site of `make start`."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from django.db import connections
from playwright.sync_api import BrowserContext, FilePayload, expect

from bench._workers import free_port
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from labeling.models.chats import Chat
from labeling.models.labels import Label
from tests.browsing import tab_to, watch
from tests.factories.imports import csv_file
from tests.factories.runs import block, environment
from tests.stub_endpoint import Body, StubEndpoint, StubReply, asked_keys, conversation

pytestmark = [pytest.mark.browser, pytest.mark.heavy, pytest.mark.django_db(transaction=True)]

CHATS, LABELLED = 12, 2
PASSWORD = "correct horse battery"
RULE = "A promise without a date is False."
REFUSED = StubReply(raw=b'{"error": {"message": "Incorrect API key provided."}}', status=401)
QUESTION = "Did the bot give the order status?"


def judge(body: Body) -> StubReply:
    """Find that everything is True, until the prompt asks for dates."""
    strict = RULE in conversation(body)
    return block({key: not (strict and key == "give_order_status") for key in asked_keys(body)})


def export() -> bytes:
    """Chats of another tool: four lines each, columns with names of their own."""
    rows = [("Ticket No", "Who", "What was said", "Sent at")]
    for n in range(CHATS):
        said = [("Kunde", f"Where is order {n}?"), ("Bot", "I look."), ("Kunde", "And?"), ("Bot", "Soon.")]
        rows += [(f"T-{n}", who, text, f"17.11.2026 09:{10 + m}") for m, (who, text) in enumerate(said)]
    return csv_file(*rows, delimiter=";")


@pytest.fixture
def stub() -> Iterator[StubEndpoint]:
    with StubEndpoint(judge) as endpoint:
        endpoint.models = REFUSED
        yield endpoint


@pytest.fixture
def site(transactional_db: None, tmp_path: Path) -> Iterator[str]:
    """The link that `serve` prints, which creates the first account."""
    log, own = tmp_path / "serve.log", {"LACE_ENDPOINT_KEYS": Fernet.generate_key().decode()}
    env = environment("", LACE_BROKER_DIR=str(tmp_path / "broker"), PORT=str(free_port()), **own)
    env |= {"OPENAI_API_KEY": "", "LACE_REASONING_MODEL": ""}
    connections.close_all()
    with log.open("wb") as file:
        command = [sys.executable, "manage.py", "serve"]
        serve = subprocess.Popen(
            command, cwd=settings.BASE_DIR, env=env, stdout=file, stderr=file, start_new_session=True
        )
    try:
        yield _link(log)
    finally:
        os.killpg(serve.pid, signal.SIGTERM)
        serve.wait(60)


def _link(log: Path) -> str:
    deadline = time.monotonic() + 90
    while not (found := re.search(r"http\S+/welcome/\S+", log.read_text())):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
    return found[0]


class Person:
    """Somebody who follows links, fills in fields and presses buttons; errors of the console are kept."""

    def __init__(self, context: BrowserContext) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(30_000)
        self.said: list[str] = []
        watch(self.page, self.said)

    def link(self, name: str) -> None:
        self.page.get_by_role("link", name=name, exact=True).first.click()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def fill(self, **fields: str) -> None:
        for field, value in fields.items():
            self.page.locator(f"[name={field}]:visible").first.fill(value)

    def sees(self, words: str) -> None:
        expect(self.page.locator("body")).to_contain_text(words, timeout=30_000)

    def next_step(self, title: str) -> None:
        """From Home, which names the next step, by its button."""
        self.page.get_by_role("navigation", name="Main").get_by_role("link", name="Home").click()
        step = self.page.locator(".set-up-steps li.next")
        expect(step).to_contain_text(title)
        step.get_by_role("link").click()

    def join(self, link: str, name: str, button: str) -> None:
        self.page.goto(link)
        self.fill(username=name, password1=PASSWORD, password2=PASSWORD)
        self.press(button)


@pytest.fixture
def person(new_context: Callable[[], BrowserContext]) -> Iterator[Callable[[], Person]]:
    """Make people with a browser each; in the end no console may have complained."""
    people: list[Person] = []

    def one_more() -> Person:
        people.append(Person(new_context()))
        return people[-1]

    yield one_more
    assert [one.said for one in people] == [[] for _ in people]


def write_rubric(lead: Person) -> None:
    """Two criteria of the default rubric and an own one."""
    lead.next_step("Choose a rubric")
    lead.fill(name="Support")
    boxes = lead.page.locator("input[name=criteria]")
    boxes.nth(0).check()
    boxes.nth(4).check()
    lead.press("Create rubric")
    lead.link("Add criterion")
    lead.fill(question=QUESTION, definition="True when the bot says when. False otherwise.")
    lead.press("Add criterion")
    lead.sees("3 criteria in")


def bring_chats(lead: Person) -> None:
    """A CSV file with odd columns, which the page guesses, into a new set."""
    lead.next_step("Import chats")
    file: FilePayload = {"name": "export.csv", "mimeType": "text/csv", "buffer": export()}
    lead.page.locator("#file").set_input_files(file)
    lead.press("Read the file")
    expect(lead.page.locator("#new_set")).to_have_value("export")
    lead.sees("The first 10 chats, as raters will see them.")
    lead.press("Check the file")
    lead.press(f"Import {CHATS} chats")
    lead.sees(f"{CHATS} chats imported into export")


def invite(lead: Person, rater: Person, name: str) -> None:
    lead.fill(name=name)
    lead.press("Create link")
    rater.join(lead.page.locator("#link").input_value(), name.lower(), "Create account")
    rater.sees("No chats to label")


def open_job(lead: Person) -> None:
    lead.next_step("Open a labelling job")
    lead.press("Continue")
    lead.fill(name="May")
    for box in lead.page.locator("input[name=raters]").all():
        box.check()
    lead.press("Open the job")
    lead.sees("It is in the raters’ queues now")


def label(rater: Person) -> None:
    """Some chats by keyboard: the bot never says when."""
    rater.page.get_by_role("link", name="Home").first.click()
    tab_to(rater.page, "Start chat 1")
    rater.page.keyboard.press("Enter")
    for _ in range(LABELLED):
        here = rater.page.url
        for n in range(3):
            asked = rater.page.locator("form.open:not([hidden]) legend")
            expect(rater.page.locator("#why")).to_contain_text("All answered" if n > 2 else f"{3 - n}")
            rater.page.keyboard.press("f" if asked.inner_text() == QUESTION else "t")
        expect(rater.page.locator("#why")).to_have_text("All answered")
        rater.page.keyboard.press("Control+Enter")
        expect(rater.page).not_to_have_url(here)


def connect(lead: Person, stub: StubEndpoint) -> None:
    """With a wrong key first: the page says so and what to do."""
    lead.next_step("Connect a model")
    lead.link("Other")
    lead.fill(name="Stub", address=stub.base_url, api_key="sk-wrong")
    lead.press("Connect")
    lead.press("Test connection")
    lead.sees("Incorrect API key provided.")
    lead.sees("Replace the key")
    stub.models = ["stub-large"]
    lead.link("Edit")
    lead.fill(api_key="sk-right")
    lead.press("Save")
    lead.press("Test connection")
    lead.page.get_by_label("stub-large").check()
    lead.press("Add selected")
    lead.press("Use by default")
    lead.sees("asks Stub from now on")


def measure(lead: Person) -> None:
    """The run, and its report."""
    lead.next_step("Run the judge")
    expect(lead.page.locator("#estimate")).to_contain_text("Calls to send")
    lead.press("Start run")
    expect(lead.page.get_by_role("heading", level=1)).to_contain_text("Done", timeout=60_000)
    lead.link("Open the report")
    lead.sees(f"30 human False labels, and there are {CHATS} chats.")


def revise(lead: Person) -> None:
    """A sentence more, tried on the chats with labels, saved, tested."""
    lead.page.get_by_role("navigation", name="Main").get_by_role("link", name="Criteria").click()
    lead.link("Give order status")
    lead.link("Edit the prompt")
    lead.page.locator("#text-objective").press("Control+End")
    lead.page.keyboard.type(f"\n\n{RULE}")
    lead.sees("Saved")
    lead.page.get_by_role("button", name="Run all").click()
    lead.sees(f"the draft on {LABELLED} of {LABELLED} run so far")
    lead.page.get_by_role("button", name="Save as version 2").click()
    lead.page.get_by_label("Reason for the change").fill("Promises need a date")
    lead.press("Save version 2")
    lead.link("Test version 2")
    expect(lead.page.locator("#estimate")).to_contain_text("too few to pass")
    lead.press("Start test")
    expect(lead.page.get_by_role("heading", level=1)).to_contain_text("Inconclusive", timeout=60_000)
    lead.sees("30 more labelled chats")


def test_a_newcomer_measures_a_judge_and_tests_a_revision_by_pages_alone(
    site: str, stub: StubEndpoint, person: Callable[[], Person]
) -> None:
    lead, ada, bo = person(), person(), person()
    lead.join(site, "dana", "Create account and start")
    lead.sees("0 of 7 steps done")
    write_rubric(lead)
    bring_chats(lead)
    lead.next_step("Invite raters")
    invite(lead, ada, "Ada")
    invite(lead, bo, "Bo")
    open_job(lead)
    label(ada)
    label(bo)
    connect(lead, stub)
    measure(lead)
    revise(lead)
    assert Chat.objects.count() == CHATS
    assert Label.objects.filter(state="submitted").count() == 2 * LABELLED * 3
    assert "sk-right" not in ConnectedEndpoint.objects.get().key
    assert {row.state for row in Run.objects.all()} == {"done"}
    assert PromptVersion.objects.filter(criterion__key="give_order_status").count() == 2
