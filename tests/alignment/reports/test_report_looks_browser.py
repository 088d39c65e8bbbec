"""The leads' pages in a real browser: names of any length, paper, keyboard, and the way back."""

from collections.abc import Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from alignment.models.certificates import Certificate
from evaluation.models.judges import Judge
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion, Rubric
from tests.browsing import SIZES, faults, lead_signed_in
from tests.factories.certificates import stored_certificate
from tests.factories.compared_runs import Compared, make_compared, urls

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

A4 = {"width": 688, "height": 990}  # px between margins of 14 mm
# What sticks out to the right of the page; tables that scroll are looked at as a whole.
STICKING_OUT = """
() => [...document.querySelectorAll("main *")]
  .filter((one) => !one.parentElement.closest(".scroll, .tabs, .vh, svg") && one.getClientRects().length)
  .filter((one) => Math.floor(one.getBoundingClientRect().right) > document.documentElement.clientWidth)
  .map((one) => one.outerHTML.slice(0, 200))
"""
FOCUSED = """
() => {
  const one = document.activeElement;
  const seen = getComputedStyle(one);
  return [one.name || one.getAttribute("href") || one.tagName, seen.outlineStyle !== "none"];
}
"""


def build_compared() -> Compared:
    """Every name is as long as it may be, without a place to break; of many topics."""
    compared = make_compared(chats=200)
    word = "calibration_" * 20
    ChatSet.objects.update(name=word[:120])
    Rubric.objects.update(name=word[:120])
    Judge.objects.update(name=word[:200])
    Rater.objects.filter(name="cleo").update(name=word[:120])
    Criterion.objects.filter(key="wrong_fact").update(key="w" * 64)
    for n in range(1, 21):
        topic = Topic.objects.create(key=f"t{n}", name=f"{n}{word[:190]}")
        Chat.objects.filter(external_id=f"chat-{n}").update(topic=topic)
    return compared


@pytest.fixture
def lead(page: Page, live_server: LiveServer, compared: Compared) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


@pytest.fixture
def certificate(lead: Page, compared: Compared) -> Certificate:
    return stored_certificate(compared.run, by=User.objects.get(username="ines"))


def paths(compared: Compared, certificate: Certificate) -> dict[str, str]:
    """Of the pages that leads read and print."""
    shown = {name: url for name, url in urls(compared).items() if not name.startswith(("api", "chat"))}
    run, rater = compared.run.pk, Rater.objects.get(name__startswith="calibration").name
    return shown | {
        "long criterion": reverse("alignment:criterion_report", args=[run, "w" * 64]),
        "long rater": f"{shown['disagreements']}?against=rater:{rater}",
        "certificates": reverse("alignment:certificate_list"),
        "certificate": reverse("alignment:certificate_detail", args=[certificate.pk]),
        "stored": reverse("alignment:report_stored", args=[certificate.report_id]),
    }


@pytest.mark.heavy
def test_names_of_any_length_stay_on_the_page(
    lead: Page, live_server: LiveServer, compared: Compared, certificate: Certificate
) -> None:
    for name, path in paths(compared, certificate).items():
        lead.goto(live_server.url + path)
        for width, height in SIZES:
            lead.set_viewport_size({"width": width, "height": height})
            assert (name, lead.evaluate(STICKING_OUT)) == (name, [])
            assert (name, faults(lead)) == (name, [])


def test_names_of_any_length_stay_on_the_paper(
    lead: Page, live_server: LiveServer, compared: Compared, certificate: Certificate
) -> None:
    lead.emulate_media(media="print")
    lead.set_viewport_size(A4)  # type: ignore[arg-type]
    for name in ("report", "set", "certificate", "stored"):
        lead.goto(live_server.url + paths(compared, certificate)[name])
        assert (name, lead.evaluate(STICKING_OUT)) == (name, [])
        for hidden in ("header.top", ".crumbs", ".actions", ".foot", "#certify", "form"):
            assert not any(one.is_visible() for one in lead.locator(hidden).all()), (name, hidden)


def test_on_paper_folded_topics_are_named_and_next_steps_are_not(
    lead: Page, live_server: LiveServer, compared: Compared, certificate: Certificate
) -> None:
    lead.goto(live_server.url + paths(compared, certificate)["certificate"])
    topic, step = lead.locator(".topics li").first, lead.locator(".uses .step").first
    expect(topic).to_be_hidden()
    expect(step).to_be_visible()
    lead.emulate_media(media="print")
    expect(topic).to_be_visible()
    expect(step).to_be_hidden()


def test_every_control_is_reached_by_tab_and_shows_where_one_is(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    reached: dict[str, bool] = {}
    for tab in ("criteria", "matrices"):
        lead.goto(f"{live_server.url}{urls(compared)['report']}?tab={tab}")
        lead.get_by_text("Change…").click()
        for _ in range(lead.locator("a[href], select, input, button, summary, [tabindex='0']").count() + 20):
            lead.keyboard.press("Tab")
            name, seen = lead.evaluate(FOCUSED)
            reached[name] = seen or reached.get(name, False)  # a day has stops of its own, each with its mark
    cells = [f"{urls(compared)['report']}polite/{cell}/" for cell in ("tp", "fn", "fp", "tn")]
    filters = ("set", "engine", "version", "run", "split", "against", "topic", "since", "until")
    assert {*filters, *cells, "days"} <= set(reached)
    assert [name for name, seen in reached.items() if not seen and name != "BODY"] == []


def test_back_shows_the_report_of_before_and_its_filters(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.goto(live_server.url + urls(compared)["report"])
    lead.get_by_text("Change…").click()
    lead.get_by_label("Split").select_option("dev")
    lead.get_by_label("Chats since").fill("2001-01-01")
    lead.get_by_role("button", name="Show", exact=True).click()
    expect(lead.get_by_label("Split")).to_have_value("dev")
    lead.get_by_text("Change…").click()
    lead.get_by_label("Split").select_option("train")  # and not shown
    lead.go_back()
    expect(lead.locator(".facts")).to_contain_text("200 chats")
    expect(lead.get_by_label("Split")).to_have_value("")
    expect(lead.get_by_label("Chats since")).to_have_value("")
    lead.go_forward()
    expect(lead.get_by_label("Split")).to_have_value("dev")
    expect(lead.get_by_label("Chats since")).to_have_value("2001-01-01")


def test_a_page_that_the_browser_had_kept_alive_forgets_what_was_chosen_and_not_shown(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    """A restored page is not loaded again; this test sends the event that Chromium would send."""
    lead.goto(live_server.url + urls(compared)["report"])
    lead.get_by_text("Change…").click()
    lead.get_by_label("Split").select_option("dev")
    lead.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(lead.get_by_label("Split")).to_have_value("")
