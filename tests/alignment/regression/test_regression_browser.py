"""A lead tests a prompt in a real browser, by keyboard, with real workers: a pass, and a fail overridden."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from alignment.models.regressions import RegressionTest
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet
from tests.browsing import assert_fine, lead_signed_in, tab_to
from tests.factories.compared_runs import make_compared
from tests.factories.decided_tests import body_of, make_test
from tests.factories.gate_reference import CHATS, MARK, champion_of, judging, make_golden, version_of
from tests.factories.gate_verdicts import verdicts
from tests.factories.runs import answering
from tests.factories.workers import workers_with
from tests.stub_endpoint import Answer, Body, StubEndpoint, StubReply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WORSE = "Look three times."
PATIENCE = 90_000  # ms, for workers on a busy machine


def slow_when_asked_again() -> Answer:
    """A judge whose second answers come late, so that the confirming run can be watched."""
    judge, asked = judging(champion=1, wrong={MARK: 1, WORSE: 20}), 0

    def answer(body: Body) -> StubReply:
        nonlocal asked
        asked += 1
        reply = judge(body)
        return StubReply(reply.text, delay=0.3) if asked > 3 * CHATS else reply

    return answer


@pytest.fixture
def stub(settings: Settings) -> Iterator[StubEndpoint]:
    with answering(settings, slow_when_asked_again()) as endpoint:
        yield endpoint


@pytest.fixture
def golden(transactional_db: None, stub: StubEndpoint) -> ChatSet:
    chat_set = make_golden()
    version_of()
    version_of(mark=WORSE)
    return chat_set


@pytest.fixture
def lead(page: Page, live_server: LiveServer) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def started_by_keyboard(lead: Page, url: str, number: int) -> RegressionTest:
    lead.goto(f"{url}/regressions/new/?criterion=polite&version={number}")
    expect(lead.locator("#estimate")).to_contain_text("Calls to send")
    tab_to(lead, "Start test")
    lead.keyboard.press("Enter")
    expect(lead.locator(".toast")).to_contain_text("started")
    # The task of this process reaches no worker of another broker: mark it as not enqueued.
    Run.objects.filter(state="running").update(rung_at=None)
    return RegressionTest.objects.latest("id")


@pytest.mark.flow
@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_a_version_passes_and_is_released_and_a_worse_one_fails_and_is_overridden(
    lead: Page, live_server: LiveServer, golden: ChatSet, stub: StubEndpoint, tmp_path: Path
) -> None:
    heading, url = lead.get_by_role("heading", level=1), live_server.url
    with workers_with("filesystem", stub.base_url, tmp_path):
        test = started_by_keyboard(lead, url, 2)
        expect(heading).to_contain_text("Version 2 against champion version 1")
        lead.evaluate("window.same = true")
        expect(heading).to_contain_text("Pass", timeout=PATIENCE)
        assert lead.evaluate("window.same")  # no reload
        assert stub.count == 2 * CHATS
        tab_to(lead, "Release v2")
        lead.keyboard.press("Enter")
        expect(lead.locator(".toast")).to_contain_text("Released.")
        assert champion_of().number == 2

        worse = started_by_keyboard(lead, url, 3)
        assert lead.locator("#progress").is_visible()
        expect(heading).to_contain_text("Confirming", timeout=PATIENCE)
        expect(lead.locator("main")).to_contain_text("confirms it")
        expect(heading).to_contain_text("Fail", timeout=PATIENCE)
        # Champion 2 is asked already as the candidate; version 3 is asked twice.
        assert stub.count == 4 * CHATS
    lead.locator("summary", has_text="Override the gate and release").press("Enter")
    tab_to(lead, "Reason for the override")
    lead.keyboard.type("The law says so")
    tab_to(lead, "Override and release")
    lead.keyboard.press("Enter")
    expect(lead.locator("main")).to_contain_text("Released by override")
    assert champion_of().number == 3
    worse.refresh_from_db()
    test.refresh_from_db()
    assert (test.overridden, worse.overridden, worse.release_reason) == (False, True, "The law says so")


def test_the_versions_follow_the_criterion_and_the_estimate_the_choice(
    lead: Page, live_server: LiveServer, golden: ChatSet
) -> None:
    lead.goto(live_server.url + "/regressions/")
    tab_to(lead, "Start a test")
    lead.keyboard.press("Enter")
    expect(lead.get_by_role("heading", level=1)).to_have_text("Start a regression test")
    lead.wait_for_load_state("load")
    expect(lead.locator("#estimate")).to_contain_text("Choose a criterion and a version")
    before = lead.locator(".beside").bounding_box()
    tab_to(lead, "Criterion")
    lead.keyboard.press("ArrowDown")
    expect(lead.get_by_label("Version")).to_have_value("3")
    expect(lead.locator("#estimate dd").first).to_have_text(str(2 * CHATS))
    lead.get_by_label("Measure judge noise").press("Space")
    expect(lead.locator("#estimate dd").first).to_have_text(str(3 * CHATS))
    after = lead.locator(".beside").bounding_box()
    assert before is not None
    assert after is not None
    assert (before["x"], before["width"]) == (after["x"], after["width"])


def test_the_estimate_rests_while_nobody_touches_the_form(
    lead: Page, live_server: LiveServer, golden: ChatSet
) -> None:
    lead.goto(live_server.url + "/regressions/new/?criterion=polite&version=2")
    expect(lead.locator("#estimate dd").first).to_have_text(str(2 * CHATS))
    lead.wait_for_load_state("networkidle")


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(lead: Page, live_server: LiveServer) -> None:
    compared = make_compared()
    several = [verdicts(right=200, ceiling=0.9), verdicts(fixed=2, broken=4, right=194, key="wrong_fact")]
    tests = [
        make_test(compared, body=body_of(verdicts(fixed=3, broken=14, right=183, ceiling=0.9))),
        make_test(compared, body=body_of(*several), candidate=None, kind="judge"),
        make_test(compared),
        make_test(compared, state="cancelled"),
    ]
    version = PromptVersion.objects.get(number=2)
    for path in (
        "/regressions/",
        "/regressions/?state=overridden",
        f"/regressions/new/?criterion={version.criterion.key}",
        "/regressions/new/?kind=judge",
        *(f"/regressions/{test.pk}/" for test in tests),
        "/regressions/policies/",
        "/regressions/policies/new/",
    ):
        lead.goto(live_server.url + path)
        for folded in lead.locator("main details:not(.sure)").all():
            folded.evaluate("e => e.open = true")
        assert_fine(lead, path)
