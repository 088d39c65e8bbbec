"""The status page in a real browser: accessible in every size and scheme; it reloads and nothing moves."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from common.memory import memory as cache
from evaluation.call_counts.services import calls_count
from evaluation.models.runs import Attempt, ModelCall, Run
from evaluation.runs.worker.heartbeats import heartbeat, heartbeat_begin
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.runs import MODEL, point_at, workspace
from tests.factories.workers import launched

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ENDPOINT = "https://models.example/v1"
PLACES = "[...document.querySelectorAll('h2, tr, #site-now')].map(one => one.getBoundingClientRect().top)"


@pytest.fixture
def run(settings: Settings) -> Run:
    """A site with workers, calls and a run that stands still."""
    cache.clear()
    point_at(settings, ENDPOINT)
    run = launched(workspace("polite"))
    ago = timezone.now() - timedelta(minutes=3)
    Run.objects.filter(pk=run.pk).update(created_at=ago, rung_at=ago)
    heartbeat_begin(name="judge1@a-host-with-a-long-name.example.org", queues=["judge"])
    heartbeat(name="default@here", queues=["default"])
    call = ModelCall.objects.create(
        key="a" * 64, endpoint=ENDPOINT, model=MODEL, role="judge", settings={}, parts=[]
    )
    for number, outcome in enumerate(("answered", "server_error"), start=1):
        Attempt.objects.create(
            call=call, number=number, sent_at=ago, ended_at=ago, outcome=outcome, error="HTTP 500: busy"
        )
    calls_count()
    return run


def test_the_page_is_accessible_in_all_sizes(
    page: Page, live_server: LiveServer, run: Run, both_schemes: None
) -> None:
    with lead_signed_in(page, live_server.url):
        page.goto(f"{live_server.url}/status/")
        expect(page.get_by_role("link", name=f"Run {run.pk}")).to_be_visible()
        assert_fine(page, "status", every_impact=True)


def test_it_reloads_in_place_and_the_focus_stays(page: Page, live_server: LiveServer, run: Run) -> None:
    page.clock.install()
    with lead_signed_in(page, live_server.url):
        page.goto(f"{live_server.url}/status/")
        link = page.get_by_role("link", name=f"Run {run.pk}")
        link.focus()
        before = page.evaluate(PLACES)
        first = page.locator("#site-now time").text_content()
        page.clock.fast_forward(11_000)
        expect(page.locator("#site-now time")).not_to_have_text(str(first))
        assert page.evaluate(PLACES) == before
        expect(link).to_be_focused()
