"""Hostile texts are texts on every page: no dialog, no CSP violation, no element, no broken layout."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser, Dialog, Page, expect
from pytest_django.live_server_helper import LiveServer

from alignment.models.experiments import Experiment
from labeling.models.people import User
from tests.factories.rating_screen import sign_in
from tests.hostile import FENCE, PAYLOADS, WHOLE, poison
from tests.routes import ROUTES, address, read_whole, url_of
from tests.world import World, make_world

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LISTEN = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) =>
  violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""
# Elements that only a payload can have made.
MADE = """() => [...document.querySelectorAll("*")].filter((element) => {
  const tags = "iframe object embed base video audio math marquee isindex keygen img style template x";
  const attributes = [...element.attributes];
  const elsewhere = ["href", "src", "action", "formaction", "data"].some((name) => {
    const value = element.getAttribute(name);
    return value && new URL(value, location).origin !== location.origin;
  });
  return tags.split(" ").includes(element.localName) || elsewhere
    || attributes.some((one) => /^(data-)?(on|hx-on)/i.test(one.name))
    || attributes.some((one) => ["id", "class", "style"].includes(one.name) && /evil/.test(one.value))
    || (element.localName === "meta" && element.httpEquiv);
}).map((element) => element.outerHTML.slice(0, 120))"""
# Letters that hide or reorder others, where a person reads them; inside fields they may stand.
HIDDEN = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const text = texts.currentNode.data;
    const place = texts.currentNode.parentElement;
    const hidden = /[\\u200b\\u202a-\\u202e\\u2066-\\u2069\\ufeff\\u00ad\\u2060]/.test(text);
    if (hidden && !place.closest("script, textarea, option")) found.push(place.outerHTML.slice(0, 120));
  }
  return found;
}"""
WIDTHS = (1440, 390)
FILTERS = (
    "set",
    "criterion",
    "rater",
    "topic",
    "split",
    "kind",
    "state",
    "job",
    "run",
    "page",
    "against",
    "q",
)


# Pages of accounts that lead elsewhere unless the password has just been entered.
WITHOUT_FACTOR = ("mfa_activate_totp", "account_reauthenticate", "account_change_password")
WITH_FACTORS = (
    *("mfa_index", "mfa_deactivate_totp", "mfa_view_recovery_codes", "mfa_generate_recovery_codes"),
    *("mfa_remove_webauthn", "account_change_password"),
)


def poisoned_world() -> World:
    world = make_world()
    poison()
    # Addresses name an experiment by its key.
    world.args["experiment_key"] = Experiment.objects.get(pk=world.args["experiment_id"]).key
    return world


@pytest.fixture(scope="module")
def poisoned(module_rows: Callable[[Callable[[], World]], World]) -> World:
    return module_rows(poisoned_world)


@pytest.fixture
def world(poisoned: World, transactional_db: None) -> World:
    return deepcopy(poisoned)


def test_there_are_a_hundred_of_them() -> None:
    assert len(set(PAYLOADS)) >= 100


@pytest.mark.heavy
@pytest.mark.parametrize("person", ["lead", "rater"])
def test_no_text_is_more_than_text_on_any_page(
    browser: Browser, live_server: LiveServer, world: World, person: str
) -> None:
    with watched(browser, live_server, world, person) as (page, said):
        for name, path in pages(world, person):
            page.goto(live_server.url + path)
            said += faults(page, name)
    assert not said, "\n".join(said)


@pytest.mark.heavy
def test_nor_in_what_is_shown_on_demand(browser: Browser, live_server: LiveServer, world: World) -> None:
    """The preview of what an author types, the names of who labelled, and the judge's view."""

    def url(name: str, **args: str) -> str:
        return live_server.url + url_of(name, world.args, args)

    with watched(browser, live_server, world, "lead") as (page, said):
        for name, field in (("guideline_edit", "text"), ("criterion_text_edit", "guideline")):
            page.goto(url(f"labeling:{name}"))
            page.locator(f"[name={field}]").fill(f"typed {WHOLE}{FENCE}")
            expect(page.locator("#preview")).to_contain_text("typed <script>")
            said += faults(page, name)
        page.goto(url("labeling:adjudicate"))
        page.get_by_role("button", name="Show names").click()
        expect(page.get_by_role("button", name="Show names")).to_have_count(0)
        said += faults(page, "names")
    with watched(browser, live_server, world, "rater") as (page, also_said):
        page.goto(url("labeling:rate", assignment_id="submitted_assignment"))
        page.locator("#reveal").click()
        expect(page.locator(".judged").first).to_contain_text("<script>alert(1)</script>")
        also_said += faults(page, "reveal")
    assert not said + also_said, "\n".join(said + also_said)


@pytest.mark.heavy
def test_nor_on_the_pages_of_factors_and_sessions(
    browser: Browser, live_server: LiveServer, world: World
) -> None:
    """They open to whoever has just signed in; names of passkeys and browsers' descriptions are foreign."""
    for person, routes in (("author", WITHOUT_FACTOR), ("lead", WITH_FACTORS)):
        user = User.objects.get(pk=world.users[person].pk)
        session = signed_in(user)
        passkey = factors(user) if person == "lead" else 0
        with watched(browser, live_server, world, person) as (page, said):
            page.context.add_cookies([session | {"url": live_server.url}])
            for name in routes:
                path = reverse(name, args=[passkey] if name == "mfa_remove_webauthn" else [])
                page.goto(live_server.url + path)
                if "?next=" in page.url:
                    page.locator("main [name=password]").fill("correct horse battery")
                    page.locator("main [name=password]").press("Enter")
                    page.wait_for_url(f"**{path}")
                said += faults(page, name)
            assert person != "lead" or "<script>" in shown_on(page, live_server)
        # The code that an app scans is an image of ours, within the page.
        found = [one for one in said if '<img class="qr" src="data:image/svg+xml;base64,' not in one]
        assert not found, "\n".join(found)


def signed_in(user: User) -> Any:
    """The cookie of a session that has just begun, in a browser with a hostile description."""
    client = Client(headers={"User-Agent": PAYLOADS[0]})
    user.set_password("correct horse battery")
    user.save()
    client.post("/accounts/login/", {"login": user.username, "password": "correct horse battery"})
    UserSession.objects.filter(user=user).update(user_agent=PAYLOADS[0])
    name = settings.SESSION_COOKIE_NAME
    return {"name": name, "value": client.cookies[name].value}


def factors(user: User) -> int:
    """Give the account every factor; the id of a passkey whose name is hostile."""
    TOTP.activate(user, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(user)
    data = {"name": f"\u200b{WHOLE}", "credential": {}}
    return int(Authenticator.objects.create(user=user, type="webauthn", data=data).pk)


def shown_on(page: Page, live_server: LiveServer) -> str:
    page.goto(f"{live_server.url}/accounts/")
    return page.locator("main").inner_text()


@pytest.mark.heavy
def test_nor_is_what_an_address_asks_for(world: World) -> None:
    lead, payload = world.client("lead"), "\"'><img src=x onerror=alert(1)>"
    for name, path in addresses(world, "lead"):
        answer = read_whole(lead.get(path, dict.fromkeys(FILTERS, payload), follow=True))
        if answer["Content-Type"].startswith("text/html"):
            assert payload not in answer.content.decode(), name


def pages(world: World, person: str) -> Iterator[tuple[str, str]]:
    """The addresses that answer this person with a page; the API's own guide shows nobody's texts."""
    client = world.client(person)
    for name, path in addresses(world, person):
        answer = read_whole(client.get(path, follow=True))
        assert answer.status_code == 200, f"{name}: {answer.status_code}"
        # NB: a fragment shows in the page that loads it.
        if answer["Content-Type"].startswith("text/html") and b"<html" in answer.content:
            yield name, path


# The API's guide and the docs show nobody's texts; a link to reset a password ends with the e-mail address it
# was for.
LEFT_OUT = (
    "api_docs",
    "help_moved",
    "account_reset_password_from_key",
    # JSON Lines about one chat and one person, by names that others have in this world.
    "api_chat_personal_data",
    "api_person_personal_data",
)


def addresses(world: World, person: str) -> Iterator[tuple[str, str]]:
    """What this person may read."""
    for name, cases in ROUTES.items():
        for case in cases:
            readable = case.method == "GET" and person in case.may and case.says != 404
            if readable and name not in LEFT_OUT:
                yield name, address(name, case, world.args)


@contextmanager
def watched(
    browser: Browser, live_server: LiveServer, world: World, person: str
) -> Iterator[tuple[Page, list[str]]]:
    """A page of that person's, and what the browser says that it should not."""
    said: list[str] = []

    def warn(words: str) -> None:
        said.append(f"{page.url}: {words}")

    def refuse(dialog: Dialog) -> None:
        warn("a dialog")
        dialog.dismiss()

    with browser.new_context(reduced_motion="reduce") as context:
        sign_in(context, live_server, world.users[person])
        context.add_init_script(LISTEN)
        page = context.new_page()
        page.on("dialog", refuse)
        page.on("pageerror", lambda error: warn(str(error)))
        page.on("console", lambda message: warn(message.text) if message.type == "error" else None)
        yield page, said


def faults(page: Page, name: str) -> list[str]:
    """What payloads did to the page, with everything on it unfolded."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    expect(page.locator(".htmx-request")).to_have_count(0)
    found = [
        *(f"{name} has {html}" for html in page.evaluate(MADE)),
        *(f"{name} hides {html}" for html in page.evaluate(HIDDEN)),
        *(f"{name} violates {violation}" for violation in page.evaluate("window.violations")),
    ]
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{name} is {wide} px wide in a window of {width}"] if wide > width else []
    return found
