"""The tutorial as a reader follows it, from `make demo` on: pages, buttons and every command."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from bench._workers import free_port
from tests.factories.checkout import Checkout, checkout
from tests.factories.doc_pages import DOCS, Block, blocks

TUTORIAL = DOCS / "tutorial.md"
ITALICS = re.compile(r"(?<![*\w])\*([^*]+)\*(?![*\w])")
SUPPORT = "Support chats: 424 chats (65 train, 169 dev, 190 holdout)"
CRITERION = "Caused needless turns"
# A page on a busy machine, and a run or a test of all chats there: seconds.
PAGE, RUN = 60, 400
SENTENCE = "A question that saves the customer a later turn is needed."


def on_pages() -> set[str]:
    """What the tutorial says is on a page."""
    return {" ".join(words.split()) for words in ITALICS.findall(TUTORIAL.read_text("utf-8"))} - {"italics"}


@dataclass(frozen=True)
class Demo:
    """The demo while it is served, the password that it printed, and a terminal in its folder."""

    url: str
    password: str
    terminal: Checkout
    commands: list[Block]

    def run(self, block: Block) -> str:
        """Run a block in a shell that the tutorial has set up."""
        return self.terminal.run(f"{self.commands[1].text}\n{block.text}")


def test_other_pages_start_the_demo_by_the_same_command() -> None:
    begin = blocks(TUTORIAL)[0].text
    for page in (DOCS.parent / "README.md", DOCS / "get-started.md"):
        assert begin in [block.text for block in blocks(page)], page


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    terminal, commands = checkout(tmp_path / "lace"), blocks(TUTORIAL)
    begin, set_up, *_ = commands
    assert begin.text == "make demo\n" and set_up.text.startswith("export ")
    with terminal.serving(begin.text, port=free_port()) as (url, printed):
        password = re.search(r"Sign in as .*; password (\S+)", printed)
        assert password is not None, printed
        yield Demo(url, password[1], terminal, commands)


@dataclass
class Reader:
    """Somebody who does what the tutorial says; its words are noted when they were there."""

    page: Page
    demo: Demo
    found: set[str] = field(default_factory=set)

    def sign_in(self, name: str) -> None:
        if self.page.url.startswith("http"):
            self.page.goto(self.demo.url)
            self.page.locator(".account summary").click()
            self.press("Sign out")
        self.page.goto(self.demo.url)
        self.page.get_by_label("User name or e-mail").fill(name)
        self.page.get_by_label("Password").fill(self.demo.password)
        self.page.keyboard.press("Enter")
        expect(self.page.locator(".account summary")).to_be_visible(timeout=1000 * PAGE)

    def control(self, name: str, inside: Locator | None = None) -> Locator:
        """The first link, button or menu that shows this text."""
        place = inside or self.page.locator("body")
        words = r"\s+".join(re.escape(word) for word in name.split())
        named = re.compile(rf"^\s*{words}\s*(:|$|\n|\d|Ctrl)")
        return place.locator("a:visible, button:visible, summary:visible").filter(has_text=named).first

    def press(self, name: str, inside: Locator | None = None) -> None:
        self.control(name, inside).click()
        self.found.add(name)

    def sees(self, *words: str, within: str = "body", seconds: float = PAGE) -> None:
        for text in words:
            expect(self.page.locator(within).first).to_contain_text(text, timeout=1000 * seconds)
            self.found.add(text)

    def choose(self, label: str, option: str) -> None:
        self.page.get_by_label(label, exact=True).select_option(label=option)
        self.found |= {label, option}

    def go(self, entry: str) -> None:
        self.page.get_by_role("navigation", name="Main").get_by_role("link", name=entry, exact=True).click()
        self.found.add(entry)


def label(reader: Reader) -> None:
    reader.sign_in("rater")
    reader.sees("Home")
    reader.press("Start chat 1")
    reader.sees("Did the bot correctly understand every request the customer made?")
    reader.sees("True", "False", "Not applicable", "Undo", "Submit and next")
    why = reader.page.locator("#why")
    for left in range(13, -1, -1):
        reader.page.keyboard.press("t")
        expect(why).to_contain_text(f"{left} open" if left else "All answered")
    reader.sees("All answered")
    reader.page.keyboard.press("Control+Enter")
    reader.sees("Chat 2 of 21", within="h1")


def evaluate(reader: Reader) -> None:
    reader.sign_in("lead")
    reader.go("Runs")
    reader.press("Start a run")
    reader.choose("Chat set", SUPPORT)
    reader.sees("Estimate", "All answers are stored. This run costs nothing.")
    reader.press("Start run")
    reader.sees("Done", within="h1", seconds=RUN)


def align(reader: Reader) -> None:
    reader.press("Open the report")
    reader.sees("Criteria", "Next step")
    row = reader.page.locator("tr", has_text=CRITERION).first
    expect(row).to_contain_text("Not aligned", timeout=1000 * PAGE)
    reader.found |= {CRITERION, "Not aligned"}
    reader.press("Matrices")
    matrix = reader.page.locator("#c-caused_needless_turns")
    matrix.get_by_role("link", name="missed failure").click()
    reader.found.add("missed failure")
    reader.page.locator("article.disc").first.get_by_role("link").first.click()
    expect(reader.page.locator(".label-cards article").first).to_be_visible(timeout=1000 * PAGE)


def revise(reader: Reader) -> None:
    reader.sign_in("author")
    reader.sees(CRITERION)
    row = reader.page.locator("tr", has_text=CRITERION).first
    expect(row).to_contain_text("below 0.80", timeout=1000 * PAGE)
    reader.go("Criteria")
    reader.press(CRITERION)
    reader.press("Edit the prompt")
    reader.sees("Objective")
    reader.page.locator("#text-objective").press("Control+End")
    reader.page.keyboard.type(f"\n{SENTENCE}")
    reader.sees("Saved")
    reader.found.discard("Saved")
    reader.press("Run all")
    tried = re.compile(r"the draft on \d+ of 5 run so far")
    expect(reader.page.locator("body")).to_contain_text(tried, timeout=1000 * RUN)
    reader.press("Save as version 2…")
    reader.page.get_by_label("Reason for the change").fill("Count what saves a later turn")
    reader.found.add("Reason for the change")
    reader.press("Save version 2")


def release(reader: Reader) -> None:
    reader.press("Test version 2")
    reader.sees("Start a regression test", within="h1")
    reader.choose("Chat set", SUPPORT)
    reader.choose("Split", "dev")
    reader.sees("Power")
    reader.press("Start test")
    reader.sees("Pass", within="h1", seconds=RUN)
    reader.press("Ask for a release…")
    reader.page.get_by_label("Note to the leads").fill("May it go live?")
    reader.found.add("Note to the leads")
    reader.press("Ask for a release")
    reader.sign_in("lead")
    reader.sees("Release asked")
    request = reader.page.locator("li", has_text=f"{CRITERION} v2").first
    reader.press("Review release", request)
    reader.found.add(f"{CRITERION} v2")
    reader.press("Release v2")
    expect(reader.page.locator(".released")).to_contain_text("New runs use it", timeout=1000 * PAGE)


def monitor(reader: Reader) -> None:
    reader.go("Monitoring")
    reader.sees("Alerts")
    reader.press("Reasked known information: the bot changed")
    reader.sees("Failing chats")
    reader.press("Acknowledge")
    expect(reader.page.locator("h1")).to_contain_text("Acknowledged", timeout=1000 * PAGE)


@pytest.mark.browser
@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_the_tutorial_can_be_followed_by_pages_and_by_commands(
    demo: Demo, new_context: Callable[[], BrowserContext]
) -> None:
    page = new_context().new_page()
    page.set_default_timeout(1000 * PAGE)
    reader = Reader(page, demo)
    for step in (label, evaluate, align, revise, release, monitor):
        step(reader)
    assert on_pages() == reader.found
    for block in demo.commands[2:]:
        if "add_prompt" in block.text:
            prompt = demo.terminal.folder / "prompts/caused_needless_turns.md"
            prompt.write_text(prompt.read_text().replace("# Style", f"{SENTENCE} Else it is not.\n\n# Style"))
        demo.run(block)
    assert "Pass" in (demo.terminal.folder / "result.md").read_text()
    assert [json.loads(line) for line in (demo.terminal.folder / "labels.jsonl").read_text().splitlines()]
