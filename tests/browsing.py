"""What tests in a real browser share."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect

from labeling.models.people import Role
from tests.factories import make_user

PASSWORD = "correct horse battery"  # of the accounts that `make_user` makes


@contextmanager
def lead_signed_in(page: Page, url: str) -> Iterator[Page]:
    """Signed in through the form; afterwards the console must be clean: no CSP violation, no script error."""
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    make_user("ines", Role.LEAD)
    page.goto(url)
    page.get_by_label("Username").fill("ines")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Reports")
    yield page
    assert problems == []
