"""No word is lost: what is typed into a form survives the way away from it and back."""

import re
from collections.abc import Iterator

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse
from playwright.sync_api import Browser, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from common.models import FormDraft
from labeling.models.people import Role, User
from labeling.models.rubric import RubricGuideline
from tests.browsing import sign_in, watch
from tests.cases import AUTHORS, RATERS
from tests.factories.rows import make_rubric, make_user
from tests.routes import ROUTES, address
from tests.world import World, make_world

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CANARY = "A word that nobody may lose"
FREE = "textarea, input[type=text], input[type=search], input[type=url], input:not([type])"
# Types the canary into every control of the forms that keep drafts; how many, and with which of them.
TYPE = f"""() => {{
  const controls = [...document.querySelectorAll("form:has(input[name=form_draft])")]
    .flatMap((form) => [...form.querySelectorAll("{FREE}")]).filter((one) => !one.readOnly && !one.disabled);
  for (const one of controls) {{
    one.value = "{CANARY}";
    one.dispatchEvent(new Event("input", {{bubbles: true}}));
  }}
  return controls.length;
}}"""
POSTS = re.compile(r"<form[^>]*(method=.post|hx-post|data-form-draft)(?![^>]*data-sign-out)")
EMPTY = "!Object.keys(localStorage).some((one) => one.startsWith('lace-form-'))"
HAVE = f"""() => [...document.querySelectorAll("form:has(input[name=form_draft])")]
    .flatMap((form) => [...form.querySelectorAll("{FREE}")])
    .filter((one) => one.value === "{CANARY}").length"""
# Posted forms with free text that keep none, but those with passwords.
WITHOUT = f"""() => [...document.querySelectorAll("form[method=post]:not([data-own-draft])")]
    .filter((form) => form.querySelector("{FREE}") && !form.querySelector("input[type=password]"))
    .filter((form) => !form.elements.form_draft).map((form) => form.outerHTML.slice(0, 80))"""


@pytest.fixture
def lead_user(transactional_db: None) -> User:
    return make_user("ines", Role.LEAD)


@pytest.fixture
def guideline(lead_user: User) -> str:
    """The address of a form."""
    return reverse("labeling:guideline_edit", args=[make_rubric("polite").pk])


@pytest.fixture
def lead(page: Page, live_server: LiveServer, lead_user: User) -> Iterator[Page]:
    problems: list[str] = []
    watch(page, problems)
    sign_in(page.context, live_server.url, lead_user)
    yield page
    assert problems == []


def typed(page: Page, text: str = CANARY) -> None:
    page.get_by_label("Guideline").first.fill(text)
    expect(page.get_by_text("Draft saved")).to_be_visible()


def pages_with_forms(page: Page, site: str, world: World, person: str) -> Iterator[str]:
    """Every page of the route table that this person may open and that has more than the form to sign out."""
    for name, cases in ROUTES.items():
        for case in cases:
            url = address(name, case, world.args)
            if case.method != "GET" or not case.allows(person) or url.startswith("/api/"):
                continue
            if name == "account_reset_password_from_key":  # a link to reset a password ends the session
                continue
            answer = page.request.get(site + url)
            if "text/html" in answer.headers["content-type"] and POSTS.search(answer.text()):
                yield answer.url


@pytest.mark.heavy
@pytest.mark.parametrize("person", [RATERS[0], *AUTHORS])
def test_what_is_typed_into_any_form_is_there_again(page: Page, live_server: LiveServer, person: str) -> None:
    world = make_world()
    sign_in(page.context, live_server.url, world.users[person])
    lost, tried = [], 0
    for url in dict.fromkeys(pages_with_forms(page, live_server.url, world, person)):
        page.goto(url)
        page.wait_for_load_state("networkidle")  # htmx has put its parts in
        lost += [f"{url} keeps no draft of {form}" for form in page.evaluate(WITHOUT)]
        if not (count := page.evaluate(TYPE)):
            continue
        expect(page.locator(".draft-state:not(:empty)").first).to_be_attached()
        page.goto(f"{live_server.url}/healthz")
        page.goto(url)
        page.wait_for_load_state("networkidle")
        if (found := page.evaluate(HAVE)) != count:
            lost.append(f"{url}: {found} of {count}")
        tried += 1
        FormDraft.objects.all().delete()
        page.evaluate("localStorage.clear()")
    assert not lost, "\n".join(lost)
    assert tried > (8 if person == "lead" else 0)


def test_a_draft_is_restored_named_and_can_be_discarded(
    lead: Page, live_server: LiveServer, guideline: str
) -> None:
    lead.goto(live_server.url + guideline)
    typed(lead)
    lead.goto(live_server.url + "/workspace/")
    lead.go_back()
    field = lead.get_by_label("Guideline").first
    expect(field).to_have_value(CANARY)
    expect(lead.get_by_text("restored")).to_be_visible()
    lead.get_by_role("button", name="Discard").click()
    expect(field).to_have_value("")
    expect(lead.get_by_text("restored")).to_be_hidden()
    lead.reload()
    expect(field).to_have_value("")
    assert not FormDraft.objects.exists()


def test_a_form_waits_for_its_draft_on_the_way_so_that_none_comes_back(
    lead: Page, live_server: LiveServer, guideline: str
) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == "PUT":
            held.append(route)
        else:
            route.continue_()

    lead.route("**/api/form-drafts/**", hold)
    lead.goto(live_server.url + guideline)
    with lead.expect_request(lambda request: request.method == "PUT"):
        lead.get_by_label("Guideline").first.fill(CANARY)
        lead.get_by_label("Reason").fill("Clearer.")
    lead.get_by_role("button", name="Save version").click(no_wait_after=True)
    lead.wait_for_timeout(500)
    assert not RubricGuideline.objects.exists()
    held.pop().continue_()
    expect(lead).not_to_have_url(live_server.url + guideline)
    assert RubricGuideline.objects.get().text == CANARY
    assert not FormDraft.objects.exists()


def test_a_form_sent_after_the_session_ended_is_sent_once_after_the_sign_in(
    lead: Page, live_server: LiveServer, lead_user: User, guideline: str
) -> None:
    lead_user.set_password("a long password")
    lead_user.save()
    sign_in(lead.context, live_server.url, lead_user)
    lead.goto(live_server.url + guideline)
    typed(lead)
    lead.get_by_label("Reason").fill("It was unclear.")
    Session.objects.all().delete()
    lead.get_by_role("button", name="Save").click()
    expect(lead.get_by_role("heading", name="Sign in")).to_be_visible()
    lead.wait_for_load_state()  # its script remembers the form
    lead.get_by_label("User name or e-mail").fill("ines")
    lead.get_by_label("Password").fill("a long password")
    lead.get_by_role("button", name="Sign in", exact=True).click()
    expect(lead.get_by_text(CANARY)).to_be_visible()
    assert RubricGuideline.objects.latest("pk").text == CANARY
    assert RubricGuideline.objects.filter(text=CANARY).count() == 1
    assert not FormDraft.objects.exists()
    lead.wait_for_load_state("networkidle")
    assert lead.evaluate(EMPTY)


def test_two_tabs_overwrite_nothing(lead: Page, live_server: LiveServer, guideline: str) -> None:
    other = lead.context.new_page()
    for tab in (lead, other):
        tab.goto(live_server.url + guideline)
        tab.wait_for_load_state("networkidle")
    typed(lead, "From the first tab")
    other.get_by_label("Guideline").first.fill("From the second tab")
    expect(other.get_by_text("Another tab has changed this draft")).to_be_visible()
    assert FormDraft.objects.get().values["text"] == ["From the first tab"]
    other.get_by_role("button", name="Use that draft").click()
    expect(other.get_by_label("Guideline").first).to_have_value("From the first tab")


def test_signing_out_leaves_nothing_in_the_browser(
    lead: Page, live_server: LiveServer, guideline: str, lead_user: User, browser: Browser
) -> None:
    lead.goto(live_server.url + guideline)
    typed(lead)
    lead.locator(".account summary").click()
    lead.get_by_role("button", name="Sign out").click()
    expect(lead.get_by_label("User name or e-mail")).to_be_visible()
    lead.wait_for_load_state("networkidle")
    assert lead.evaluate(EMPTY)
    # The server has it still, for this account alone, on any machine.
    another = browser.new_context()
    sign_in(another, live_server.url, lead_user)
    page = another.new_page()
    page.goto(live_server.url + guideline)
    expect(page.get_by_label("Guideline").first).to_have_value(CANARY)
    another.close()
