"""What tests in a real browser share."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any, Literal

from axe_playwright_python.base import AXE_SCRIPT
from django.conf import settings
from django.db import connections
from django.test import Client
from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, expect

from labeling.models.people import Role, User
from tests.factories.rows import make_user

SIZES = ((1440, 900), (390, 844))
Scheme = Literal["light", "dark"]
# The headless shell first: it draws no window, which halves the time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# Three browsers on two cores may miss Playwright's 5 seconds; what comes in time waits no longer for it.
expect.set_options(timeout=15_000)
# See the fixtures `each_scheme` and `both_schemes`.
schemes: tuple[Scheme, ...] = ("light", "dark")
every_scheme = False


def browser_path() -> str | None:
    """The first of `BROWSERS` that this machine has."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def watch(page: Page, said: list[str]) -> None:
    """What the console complains of. NB: htmx tells it of a request that a newer one replaced, too."""

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(("htmx:sendAbort", "htmx:afterRequest")):
            said.append(message.text)

    page.on("console", heard)
    page.on("pageerror", lambda error: said.append(str(error)))


@contextmanager
def lead_signed_in(page: Page, url: str) -> Iterator[Page]:
    """Signed in by cookie, on no page yet; afterwards the console must be clean of violations and errors."""
    problems: list[str] = []
    watch(page, problems)
    sign_in(page.context, url, make_user("ines", Role.LEAD))
    yield page
    assert problems == []


def sign_in(context: BrowserContext, url: str, user: User) -> None:
    """Give the browser the cookie of a session; the form is for the tests of signing in."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": url}])


def press(page: Page, key: str) -> None:
    """Press a key once the scripts of the page listen: right after a link was followed it would be lost."""
    page.wait_for_load_state()
    page.keyboard.press(key)


def apart(do: Callable[..., Any], *args: Any) -> None:
    """What judges needs a loop of its own: the browser's runs in this thread."""

    def done() -> Any:
        try:
            return do(*args)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(done).result()


def faults(page: Page) -> list[str]:
    """What axe finds wrong with the page, whatever its impact."""
    return [rule["id"] for rule in _violations(page)]


def assert_fine(
    page: Page, where: str = "", sizes: Iterable[tuple[int, int]] = SIZES, *, every_impact: bool = False
) -> None:
    """In every size axe finds nothing serious and nothing scrolls sideways. The page is loaded once.

    The sizes are light and dark in turn. With the fixture `each_scheme` a heavy case starts with dark, with
    `both_schemes` every size is seen in both, so that `make test-all` sees them all.
    """
    views = product(sizes, schemes) if every_scheme else zip(sizes, cycle(schemes), strict=False)
    for (width, height), scheme in views:
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (where, width)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        bad = [
            (rule["id"], rule["nodes"][0]["html"])
            for rule in _violations(page)
            if every_impact or rule["impact"] in {"serious", "critical"}
        ]
        assert (where, width, scheme, bad) == (where, width, scheme, [])
    page.emulate_media(color_scheme="light", reduced_motion="reduce")


def _violations(page: Page) -> list[dict[str, Any]]:
    """Run axe, which is loaded into a page once."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    options = {"resultTypes": ["violations"], "preload": False}
    return list(page.evaluate("options => axe.run(options).then(({violations}) => violations)", options))


@dataclass
class Hands:
    """Somebody at the browser who never types an address; clicks, choices in a list and keys are counted."""

    page: Page
    clicks: int = 0
    keys: int = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def choose(self, target: Locator, option: str) -> None:
        target.select_option(option)
        self.clicks += 1

    def press(self, key: str) -> None:
        press(self.page, key)
        self.keys += 1


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the control of this name has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "() => { const e = document.activeElement;"
            " return (e.labels && e.labels[0] ? e.labels[0] : e).textContent }"
        )
        if " ".join(focused.split()) == name:
            return
    raise AssertionError(f"Tab never reaches {name}")
