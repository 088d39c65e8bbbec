"""A lead plans labels and creates a sample in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.chats import ChatSet
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.label_samples import BARE, strip

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def bare(transactional_db: None) -> Compared:
    compared = make_compared()
    strip(compared, BARE)
    return compared


@pytest.fixture
def lead(page: Page, live_server: LiveServer) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


@pytest.mark.flow
@pytest.mark.usefixtures("each_scheme")
def test_a_lead_previews_a_sample_creates_it_and_opens_a_job(
    lead: Page, live_server: LiveServer, bare: Compared
) -> None:
    lead.goto(f"{live_server.url}/reports/runs/{bare.run.pk}/labels/?criterion=polite")
    estimate = lead.locator("#estimate")
    expect(estimate).to_contain_text("Chats to label")
    lead.get_by_label("Chats", exact=True).fill("12")
    lead.get_by_label("Judged False").fill("8")
    expect(estimate.locator("dd").first).to_have_text("12")
    assert_fine(lead, every_impact=True)
    lead.get_by_label("Chats", exact=True).fill("4000")
    lead.get_by_role("button", name="Create sample").press("Enter")
    expect(lead.get_by_text("Sample not created.")).to_be_in_viewport()
    lead.get_by_label("Chats", exact=True).fill("12")
    lead.get_by_role("button", name="Create sample").press("Enter")
    expect(lead.get_by_role("link", name="Open a labelling job")).to_be_in_viewport()
    lead.get_by_role("link", name="Open a labelling job").click()
    chat_set = ChatSet.objects.get(kind="sample")
    assert chat_set.members.count() == 12
    expect(lead.get_by_role("heading", level=1)).to_contain_text(chat_set.name)
