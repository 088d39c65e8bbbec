"""A lead writes a rubric in a real browser: ticks, a criterion, a drafted definition; axe, narrow, dark."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from alignment.models.rubric_drafts import CriterionDraft
from labeling.models.rubric import Criterion, Rubric
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.definition_drafts import DEFINITION, QUESTION, defines, draft_work_off
from tests.factories.labelling_job import make_desk
from tests.factories.runs import answering

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lead(page: Page, live_server: LiveServer, settings: Settings) -> Iterator[Page]:
    with answering(settings, defines), lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


@pytest.mark.flow
def test_from_an_empty_workspace_to_a_criterion_with_a_drafted_definition(
    lead: Page, live_server: LiveServer
) -> None:
    lead.goto(live_server.url + "/criteria/")
    lead.get_by_role("link", name="Write a rubric").click()
    lead.get_by_label("Name").fill("Web shop")
    lead.get_by_role("checkbox", name="Was every bot message polite").check()
    assert_fine(lead, "rubric_new")
    lead.get_by_role("button", name="Create rubric").click()
    expect(lead.get_by_role("status").first).to_contain_text("Web shop created with 1 criterion")
    assert_fine(lead, "rubric_detail")
    lead.get_by_role("link", name="Add criterion").first.click()
    panel = lead.locator("#definition-draft")
    expect(panel).to_contain_text("Write the question first")
    lead.get_by_label("Question").fill(QUESTION)
    lead.get_by_label("Definition", exact=True).focus()
    expect(lead.locator("code")).to_have_text("state_wrong_price")
    expect(panel).to_contain_text("tokens in and 1,000 out")
    panel.get_by_role("button", name="Draft a definition").click()
    expect(panel).to_contain_text("Waiting for a worker")
    draft_work_off(CriterionDraft.objects.get())
    expect(panel).to_contain_text("False when it states none.")
    expect(lead.get_by_label("Definition", exact=True)).to_have_value("")  # never by itself
    assert_fine(lead, "criterion_new")
    panel.get_by_role("button", name="Use this definition").click()
    expect(lead.get_by_label("Definition", exact=True)).to_have_value(DEFINITION)
    lead.get_by_role("button", name="Add criterion").click()
    expect(lead.get_by_role("status").first).to_contain_text("Its key is state_wrong_price")
    row = Criterion.objects.get(key="state_wrong_price")
    assert row.versions.get().definition == DEFINITION
    assert row.rubric == Rubric.objects.get(name="Web shop")


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(lead: Page, live_server: LiveServer) -> None:
    desk = make_desk()
    for path in (
        "",
        "new/",
        f"{desk.rubric.pk}/",
        f"{desk.rubric.pk}/criteria/new/",
        "criteria/polite/edit/",
    ):
        lead.goto(f"{live_server.url}/rubrics/{path}")
        assert_fine(lead, path)
