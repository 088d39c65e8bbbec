"""A lead in a real browser, from the sign-in to a disagreeing chat; accessibility and CSP of every page."""

import re
from collections.abc import Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from alignment.misalignments.worker import misalignments_refresh
from evaluation.models.judges import Judge
from labeling.models.people import Rater
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.compared_runs import HUMAN, JUDGE, Compared, cell, chat_url, make_compared, urls

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def build_compared() -> Compared:
    """With the marks of a demo and of the weak judge, so that every kind of notice is on the pages."""
    compared = make_compared()
    Judge.objects.update(config={"demo": True, "endpoint": "embedded:abc"})
    Rater.objects.filter(name="anna").update(kind=Rater.Kind.DEMO)
    return compared


@pytest.fixture
def lead(page: Page, live_server: LiveServer, compared: Compared) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def test_a_lead_goes_from_the_report_through_a_cell_to_a_disagreeing_chat(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    missed = [n for n in range(1, 41) if cell("polite", n) == "fn"]
    lead.goto(live_server.url)
    lead.get_by_role("link", name="Reports", exact=True).click()
    lead.get_by_role("link", name=f"Run {compared.run.pk}").click()
    expect(lead.get_by_role("heading", level=1)).to_have_text("Alignment report")
    expect(lead.get_by_label("Notices")).to_contain_text("Labels written for this demo")
    lead.get_by_role("link", name="Matrices", exact=True).click()
    number = lead.locator("#c-polite td.off a").first
    expect(number).to_contain_text(str(len(missed)))
    number.click()
    expect(lead.get_by_role("heading", level=1)).to_have_text("False alarm: judge failed, raters passed")
    expect(lead.locator("article.disc")).to_have_count(len(missed))
    lead.locator("article.disc a").nth(1).click()

    n = missed[1]
    expect(lead.locator(".crumbs")).to_contain_text(f"chat-{n}")
    expect(lead.locator("#m1")).to_contain_text(f"Where is order {n}?")
    cards = lead.locator(".label-cards article")
    expect(cards).to_have_count(3)
    for place, name in enumerate(("anna", "ben", "cleo")):
        expect(cards.nth(place)).to_contain_text(name)
        expect(cards.nth(place)).to_contain_text(f"{name} on polite: see m2")
    expect(cards.first).to_contain_text("True")
    expect(lead.get_by_role("heading", name=re.compile("^Verdict"))).to_contain_text("False")
    expect(lead.locator("main")).to_contain_text(f"The judge on polite of chat {n}")
    expect(lead.locator("tr.cur")).to_contain_text("false alarm")


def test_next_and_a_cited_turn_can_be_followed(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    misalignments_refresh(compared.run)  # a page that waits for it loads itself anew
    differing = [n for n in range(1, 41) if HUMAN["polite"](n) != JUDGE["polite"](n)]
    lead.goto(live_server.url + chat_url(compared, differing[0]))
    lead.get_by_role("link", name="Next disagreement").click()
    expect(lead.locator(".crumbs")).to_contain_text(f"chat-{differing[1]}")
    lead.locator(".md a").first.click()
    assert lead.url.endswith("#m2")
    expect(lead.locator("#m2")).to_be_in_viewport()


def test_the_filter_narrows_the_report_to_a_split(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.goto(live_server.url + urls(compared)["report"])
    lead.get_by_text("Change…").click()
    lead.get_by_label("Split").select_option("dev")
    lead.get_by_label("Ground truth").select_option("rater:cleo")
    lead.get_by_role("button", name="Show", exact=True).click()
    expect(lead.locator(".facts")).to_contain_text("20 chats")
    expect(lead.get_by_label("Split")).to_have_value("dev")
    expect(lead.get_by_label("Ground truth")).to_have_value("rater:cleo")


def test_the_filters_work_by_keyboard_and_say_when_no_run_fits(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.goto(live_server.url + urls(compared)["report"])
    lead.locator("summary.scope").press("Enter")
    lead.locator("select[name=engine]").focus()
    lead.keyboard.press("o")  # the select's own: outside
    for _ in range(3):  # version, run, split
        lead.keyboard.press("Tab")
    lead.keyboard.press("d")
    lead.get_by_role("button", name="Show", exact=True).focus()
    lead.keyboard.press("Enter")
    expect(lead.get_by_label("Split")).to_have_value("dev")
    expect(lead.locator("select[name=engine]")).to_have_value("outside")
    assert lead.url.endswith(f"{urls(compared)['report']}?engine=outside&split=dev")
    lead.goto(f"{live_server.url}{urls(compared)['list']}?run=&engine=debate")
    expect(lead.get_by_role("heading", name="No matching run")).to_be_visible()


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    misalignments_refresh(compared.run)  # a page that waits for it loads itself anew
    paths = {name: url for name, url in urls(compared).items() if not name.startswith("api")}
    paths["each rater"] = paths["report"] + "?against=each-rater"
    paths["nothing in this part"] = paths["report"] + "?until=2001-01-01"
    paths["no run fits"] = paths["list"] + "?engine=debate"
    for name, path in paths.items():
        lead.goto(live_server.url + path)
        assert_fine(lead, name)


def test_a_phone_shows_a_runs_state_verdicts_and_report_without_scrolling(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.set_viewport_size({"width": 390, "height": 844})
    lead.goto(live_server.url + reverse("evaluation:run_list"))
    row = lead.locator(".runs tbody tr").first
    for part in (row.get_by_text("Done"), row.locator("[data-k=Verdicts]"), row.get_by_text("Report")):
        expect(part).to_be_in_viewport(ratio=1)
