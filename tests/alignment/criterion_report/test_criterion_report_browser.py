"""The report on one criterion in a real browser: accessible, no wider than the screen, its cells lead on."""

from collections.abc import Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evaluation.models.runs import Verdict
from labeling.models.chats import Chat, Topic
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.compared_runs import Compared, cell, make_compared
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LONG = "Refunds-of-orders-that-were-paid-by-voucher-and-never-arrived " * 2


def build_compared() -> Compared:
    """With stated probabilities enough for a diagram, a long topic, long chats and a long name."""
    compared = make_compared(chats=120)
    Verdict.objects.filter(value=True).update(p_true=0.9)
    Verdict.objects.filter(value=False).update(p_true=0.2)
    topic = Topic.objects.create(key="long", name=LONG.strip())
    Chat.objects.filter(pk__in=Chat.objects.order_by("pk")[:50]).update(topic=topic, message_count=40)
    Rater.objects.filter(name="cleo").update(name="Cleopatra-of-the-second-floor " * 3)
    return compared


@pytest.fixture
def lead(page: Page, live_server: LiveServer, compared: Compared) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def page_url(live_server: LiveServer, run: int) -> str:
    return live_server.url + reverse("alignment:criterion_report", args=[run, "polite"])


def test_a_cell_opens_its_chats_and_leads_back(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    lead.goto(page_url(live_server, compared.run.pk))
    expect(lead.get_by_role("heading", level=1)).to_have_text("Polite")
    expect(lead.get_by_role("link", name="Reports", exact=True).first).to_have_attribute(
        "aria-current", "page"
    )
    missed = sum(cell("polite", n) == "fn" for n in range(1, 121))
    number = lead.locator("#matrix td.off a").first
    expect(number).to_contain_text(str(missed))
    number.click()
    expect(lead.locator("article.disc")).to_have_count(missed)


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    promote(first := a_version(polite()))
    run_of(first, compared.chat_set, wrong=4)
    newest = run_of(a_version(polite()), compared.chat_set, wrong=10)
    for run in (compared.run.pk, newest.pk):
        lead.goto(page_url(live_server, run))
        expect(lead.locator("#baselines table")).to_contain_text("Polite", timeout=30_000)
        assert_fine(lead)


WORD = "w" * 64  # as long as a key may be, in the widest letter
# What its box cuts off sideways; a box that scrolls cuts nothing.
CUT = """() => [...document.querySelectorAll("main *")]
  .filter((one) => ["hidden", "clip"].includes(getComputedStyle(one).overflowX)
    && one.scrollWidth > one.clientWidth + 1 && !one.closest(".vh, .tab-title, svg"))
  .map((one) => one.outerHTML.slice(0, 120))"""


def test_on_a_phone_the_longest_words_are_read_whole(
    lead: Page, live_server: LiveServer, compared: Compared
) -> None:
    CriterionVersion.objects.filter(criterion=polite()).update(question="M" * 160, definition="W" * 300)
    Criterion.objects.filter(key="polite").update(key=WORD)
    Rater.objects.filter(name="ben").update(name="W" * 90)
    lead.set_viewport_size({"width": 390, "height": 844})
    args = [compared.run.pk, WORD]
    report = reverse("alignment:report_run", args=args[:1])
    criterion = reverse("alignment:criterion_report", args=args)
    numbers = f"{report}?tab=all"
    for path in (report, numbers, criterion, reverse("alignment:cell", args=[*args, "tp"])):
        lead.goto(live_server.url + path)
        expect(lead.locator("main")).to_contain_text(WORD.capitalize())
        if path in (numbers, criterion):
            expect(lead.locator("#baselines table")).to_be_visible(timeout=30_000)
        assert lead.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert lead.evaluate(CUT) == [], path
