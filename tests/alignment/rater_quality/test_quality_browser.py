"""Quality pages in a real browser: the team's keys, the matrix's heads, accessibility, phones."""

from collections.abc import Iterator

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.labels import Label, LabelingJob
from labeling.models.people import Rater
from tests.browsing import assert_fine, lead_signed_in, press
from tests.factories.compared_runs import Compared
from tests.factories.rater_quality import job_of, pages, polite

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def job(compared: Compared) -> LabelingJob:
    return job_of(compared)


@pytest.fixture
def lead(page: Page, live_server: LiveServer, compared: Compared) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def test_a_lead_goes_from_the_bar_to_the_chats_raters_disagree_on(
    lead: Page, live_server: LiveServer, job: LabelingJob
) -> None:
    lead.goto(live_server.url)
    lead.get_by_role("navigation", name="Main").get_by_role("link", name="Labelling").click()
    lead.get_by_role("navigation", name="Labelling").get_by_role("link", name="Quality").click()
    lead.get_by_role("link", name="calibration", exact=True).click()
    expect(lead.get_by_role("heading", level=1)).to_have_text("calibration")
    row = lead.get_by_role("row", name="Polite")
    expect(row).to_contain_text("22%")  # 13 of 40 chats, one pair of three agrees there
    row.get_by_role("link", name="13 chats").click()
    expect(lead.get_by_role("heading", level=1)).to_have_text("Polite: disagreements between raters")
    chat = lead.locator("article.disputed").first
    expect(chat.locator(".answer").first).to_contain_text("anna")
    chat.get_by_text("Read the chat").click()
    expect(chat.locator(".turn").first).to_contain_text("Where is order 3?")


def test_the_arrow_keys_go_from_criterion_to_criterion(
    lead: Page, live_server: LiveServer, compared: Compared, job: LabelingJob
) -> None:
    lead.goto(live_server.url + pages(compared, job)["job_id team"])
    heading = lead.get_by_role("heading", level=1)
    names = lead.get_by_role("navigation", name="Criteria").get_by_role("link").all_inner_texts()
    expect(heading).to_have_text(names[0])
    press(lead, "ArrowRight")
    expect(heading).to_have_text(names[1])
    press(lead, "ArrowRight")
    expect(heading).to_have_text(names[2])
    press(lead, "ArrowRight")
    expect(heading).to_have_text(names[2])
    press(lead, "ArrowLeft")
    expect(heading).to_have_text(names[1])


def test_the_heads_of_a_large_matrix_stay_in_view(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    version = polite().versions.get()
    for n in range(50):
        rater = Rater.objects.create(name=f"a rater with a long name {n:02}")
        Label.objects.bulk_create(
            Label(
                chat=chat, criterion=polite(), rater=rater, version=version, value=True, state="submitted",
                given_at=timezone.now(),
            )
            for chat in (compared.chat(1), compared.chat(2), compared.chat(3), compared.chat(4))
        )  # fmt: skip
    lead.set_viewport_size({"width": 1440, "height": 900})
    lead.goto(live_server.url + pages(compared)["set_id pairs"])
    box = lead.locator(".pairs-box")
    box.evaluate("box => box.scrollTo(2000, 2000)")
    frame = box.bounding_box()
    last = box.locator("thead th").last.bounding_box()
    name = box.locator("tbody tr").last.locator("th").bounding_box()
    assert frame and last and name
    assert last["y"] == pytest.approx(frame["y"], abs=1)
    assert name["x"] == pytest.approx(frame["x"], abs=1)
    assert lead.evaluate("document.documentElement.scrollWidth") <= 1440


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(
    lead: Page,
    live_server: LiveServer,
    compared: Compared,
    job: LabelingJob,
) -> None:
    for name, path in pages(compared, job).items():
        if "csv" in name or "api" in name:
            continue
        lead.goto(live_server.url + path)
        assert_fine(lead, name)
