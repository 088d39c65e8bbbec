"""What tests in a real browser share."""

from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, expect

from labeling.models.people import Role
from tests.factories.rows import make_user

PASSWORD = "correct horse battery"  # of the accounts that `make_user` makes


def watch(page: Page, said: list[str]) -> None:
    """What the console complains of. NB: htmx tells it of a request that a newer one replaced, too."""

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(("htmx:sendAbort", "htmx:afterRequest")):
            said.append(message.text)

    page.on("console", heard)
    page.on("pageerror", lambda error: said.append(str(error)))


@contextmanager
def lead_signed_in(page: Page, url: str) -> Iterator[Page]:
    """Signed in through the form; afterwards the console must be clean: no CSP violation, no script error."""
    problems: list[str] = []
    watch(page, problems)
    make_user("ines", Role.LEAD)
    page.goto(url)
    page.get_by_label("Username").fill("ines")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Reports")
    yield page
    assert problems == []


def faults(page: Page) -> list[str]:
    """What axe finds wrong with the page, whatever its impact."""
    return [one["id"] for one in Axe().run(page).response["violations"]]
