"""The page of a report in a real browser: its height, its table, tabs that keep one's place, and paper."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.rubric import Criterion
from tests.browsing import assert_fine
from tests.factories.compared_runs import Compared, make_compared, more_criteria, urls

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HEIGHT, ROW = 2500, 44  # px that a page of 13 criteria and a row may have
HEIGHTS = "rows => rows.map(row => row.getBoundingClientRect().height)"
TOP = "one => one.getBoundingClientRect().top"


def build_compared() -> Compared:
    """Thirteen criteria, one of them critical."""
    compared = make_compared()
    more_criteria(compared, 10)
    Criterion.objects.filter(key="wrong_fact").update(critical=True)
    return compared


@pytest.fixture
def report(signed_in: Page, live_server: LiveServer, compared: Compared) -> Page:
    signed_in.set_viewport_size({"width": 1440, "height": 900})
    signed_in.goto(live_server.url + urls(compared)["report"])
    return signed_in


def rows(page: Page) -> list[str]:
    """Names of the criteria that one sees, in their order."""
    return [one.inner_text() for one in page.locator("tr.r .name a:not(.unfold):visible").all()]


def test_thirteen_criteria_fit_and_the_worst_is_above_the_fold(report: Page) -> None:
    assert report.evaluate("document.documentElement.scrollHeight") <= HEIGHT
    assert max(report.locator("tr.r").evaluate_all(HEIGHTS)) <= ROW
    assert rows(report)[0] == "Wrong fact" and len(rows(report)) == 13
    for place in (".lede", ".tally", "#next", ".facts"):
        expect(report.locator(place)).to_be_in_viewport(ratio=1)
    expect(report.locator("tr.r").first).to_be_in_viewport()


def test_the_head_of_the_table_stays_while_one_scrolls(report: Page) -> None:
    report.set_viewport_size({"width": 1440, "height": 500})
    report.locator("tr.r").nth(9).scroll_into_view_if_needed()
    report.mouse.wheel(0, 200)
    report.wait_for_function("document.querySelector('.by-criterion th').getBoundingClientRect().top < 1")
    assert report.locator(".by-criterion thead th").first.evaluate(TOP) == pytest.approx(0, abs=1)


def test_details_open_by_mouse_and_by_keys(report: Page) -> None:
    details, button = report.locator("#more-polite"), report.locator("#unfold-polite")
    button.click()
    expect(details).to_be_visible()
    button.press("Space")
    expect(details).to_be_hidden()
    button.press("Enter")
    expect(details).to_be_visible()
    report.get_by_role("link", name="Unfold all").click()
    expect(report.locator("tr.more:visible")).to_have_count(13)
    report.get_by_role("link", name="Fold all").click()
    expect(report.locator("tr.more:visible")).to_have_count(0)


def test_tabs_order_and_filters_change_in_place_and_back_undoes_them(report: Page) -> None:
    report.evaluate("window.sameDocument = true")
    report.get_by_role("link", name="Criterion", exact=True).click()
    report.wait_for_url("**sort=name*")
    expect(report.get_by_role("columnheader", name="Criterion")).to_have_attribute("aria-sort", "ascending")
    report.locator("#dimension-part_1").click()
    report.wait_for_url("**dimension=part_1*")
    expect(report.locator("tr.r:visible")).to_have_count(3)
    report.get_by_role("link", name="Matrices", exact=True).click()
    expect(report.locator(".matrices article:visible")).to_have_count(3)
    expect(report.locator("#criteria")).to_be_hidden()
    assert report.evaluate("window.sameDocument")
    report.go_back()
    expect(report.locator("#criteria")).to_be_visible()
    expect(report.locator("tr.r:visible")).to_have_count(3)


def test_an_address_with_a_place_opens_the_tab_that_has_it(
    report: Page, live_server: LiveServer, compared: Compared
) -> None:
    report.goto(f"{live_server.url}{urls(compared)['report']}#c-polite")
    expect(report.locator("#c-polite")).to_be_in_viewport()
    expect(report.locator("#criteria")).to_be_hidden()


def test_one_menu_is_open_at_a_time_and_escape_closes_it(report: Page) -> None:
    export = report.locator("summary").get_by_text("Export", exact=True)
    report.get_by_text("Change…").click()
    export.click()
    expect(report.locator("details.menu[open]")).to_have_count(1)
    expect(report.get_by_role("link", name="Report, JSON")).to_be_visible()
    report.keyboard.press("Escape")
    expect(report.locator("details.menu[open]")).to_have_count(0)
    expect(export).to_be_focused()


def test_paper_has_every_tab_row_and_reason_whatever_the_filters(
    report: Page, live_server: LiveServer, compared: Compared
) -> None:
    report.goto(f"{live_server.url}{urls(compared)['report']}?tab=engine&dimension=part_1")
    report.emulate_media(media="print")
    expect(report.locator("tr.more:visible")).to_have_count(13)
    for place in ("#criteria", "#matrices", "#dimensions", "#engine", "#excluded", "#numbers"):
        expect(report.locator(place)).to_be_visible()
    expect(report.locator(".report-view .tabs")).to_be_hidden()


@pytest.mark.heavy
@pytest.mark.usefixtures("each_scheme")
def test_every_tab_is_fine(report: Page, live_server: LiveServer, compared: Compared) -> None:
    for query in (
        "?open=all",
        "?tab=matrices",
        "?tab=dimensions",
        "?tab=engine",
        "?tab=excluded",
        "?tab=all",
    ):
        report.goto(live_server.url + urls(compared)["report"] + query)
        assert_fine(report, query)
