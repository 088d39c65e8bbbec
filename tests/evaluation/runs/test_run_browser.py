"""A lead in a real browser: a run started by keyboard, its progress without a reload; axe and CSP."""

from collections.abc import Iterator

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.profiles import profile_save, profiles_ensure
from evaluation.models.runs import Run, Unit
from labeling.models.rubric import Rubric
from tests.browsing import assert_fine, lead_signed_in, tab_to
from tests.factories.rows import make_set
from tests.factories.runs import always, answering, workspace
from tests.factories.verdicts import add_verdicts, make_judge, make_run
from tests.stub_endpoint import StubEndpoint

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def run(transactional_db: None) -> Run:
    """A running run with a finished part, beside a profile of its own."""
    profiles_ensure()
    profile_save(name="careful", choice=JudgeSpec("debate", models={"judge": "big"}))
    chat_set = workspace("polite", chats=2)
    run = make_run(make_judge(chat_set.rubric), chat_set, state="running", error="")
    add_verdicts(run, 10)
    Unit.objects.filter(run=run).update(finished_at=timezone.now())
    Run.objects.filter(pk=run.pk).update(units_total=20)
    return run


@pytest.fixture
def stub(settings: Settings) -> Iterator[StubEndpoint]:
    settings.CELERY_TASK_ALWAYS_EAGER = False
    with answering(settings, always(True)) as endpoint:
        yield endpoint


@pytest.fixture
def lead(page: Page, live_server: LiveServer, run: Run, stub: StubEndpoint) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def test_a_run_is_chosen_estimated_and_started_by_keyboard(lead: Page, live_server: LiveServer) -> None:
    make_set(Rubric.objects.get(), name="other")  # of one set alone the form makes no question
    lead.goto(live_server.url + "/runs/")
    tab_to(lead, "Start a run")
    lead.keyboard.press("Enter")
    expect(lead.get_by_role("heading", level=1)).to_have_text("New run")
    expect(lead.locator("#estimate")).to_contain_text("Choose a chat set")
    lead.wait_for_load_state("load")  # every style is there
    before = lead.locator(".beside").bounding_box()
    tab_to(lead, "Chat set")
    lead.keyboard.press("ArrowDown")
    expect(lead.locator("#estimate")).to_contain_text("Calls to send")
    expect(lead.locator("#estimate dd").first).to_have_text("2")
    assert lead.locator(".beside").bounding_box() == before  # nothing jumps
    tab_to(lead, "Maximum chats")
    lead.keyboard.type("1")
    expect(lead.locator("#estimate dd").first).to_have_text("1")
    tab_to(lead, "Start run")
    lead.keyboard.press("Enter")
    expect(lead.locator(".toast")).to_contain_text("started")
    started = Run.objects.latest("id")
    assert (started.units_total, started.options["limit"]) == (1, 1)


@pytest.mark.flow
def test_the_run_page_follows_the_run_without_a_reload(lead: Page, live_server: LiveServer, run: Run) -> None:
    lead.goto(f"{live_server.url}/runs/{run.pk}/")
    lead.evaluate("window.same = true")
    expect(lead.locator("#progress")).to_contain_text("10 of 20 units done")
    Run.objects.filter(pk=run.pk).update(units_done=15)
    expect(lead.locator("#progress")).to_contain_text("15 of 20 units done")
    expect(lead.get_by_role("heading", level=1)).to_contain_text("15 of 20")
    Run.objects.filter(pk=run.pk).update(units_done=20, state="done", finished_at=timezone.now())
    expect(lead.get_by_role("heading", level=1)).to_contain_text("Done")
    expect(lead.get_by_role("button", name="Pause")).to_have_count(0)
    # The engine's part comes by itself, with the page that was swapped in as well.
    expect(lead.locator("main")).to_contain_text("Suspect chats")
    assert lead.evaluate("window.same")


def test_missing_verdicts_are_counted_while_the_run_goes_on(
    lead: Page, live_server: LiveServer, run: Run
) -> None:
    lead.goto(f"{live_server.url}/runs/{run.pk}/")
    lead.evaluate("window.same = true")
    missing = lead.get_by_role("row", name="Unparsed").locator(".num")
    expect(missing).to_have_text("1")
    add_verdicts(run, 20)
    expect(missing).to_have_text("3")
    assert lead.evaluate("window.same")


def test_pause_keeps_the_focus_while_the_page_follows_and_cancel_asks_once_more(
    lead: Page, live_server: LiveServer, run: Run
) -> None:
    lead.goto(f"{live_server.url}/runs/{run.pk}/")
    tab_to(lead, "Pause")
    Run.objects.filter(pk=run.pk).update(units_done=16)
    expect(lead.locator("#progress")).to_contain_text("16 of 20")
    expect(lead.get_by_role("button", name="Pause")).to_be_focused()
    lead.keyboard.press("Enter")
    expect(lead.locator(".toast")).to_contain_text("paused")
    sure = lead.get_by_role("button", name=f"Cancel run {run.pk}")
    expect(sure).not_to_be_visible()
    lead.locator("summary", has_text="Cancel run").press("Enter")
    sure.press("Enter")
    expect(lead.get_by_role("heading", level=1)).to_contain_text("Cancelled")


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(
    lead: Page, live_server: LiveServer, run: Run
) -> None:
    careful = profile_save(name="second", choice=JudgeSpec("debate", models={"judge": "big"}))
    for path in (
        "/runs/",
        "/runs/?state=cancelled",
        "/runs/new/",
        f"/runs/{run.pk}/",
        "/profiles/",
        f"/profiles/{careful.pk}/",
        f"/profiles/{careful.pk}/edit/",
        "/profiles/new/",
    ):
        lead.goto(live_server.url + path)
        for folded in lead.locator("main details:not(.sure)").all():
            folded.evaluate("e => e.open = true")
        assert_fine(lead, path)
