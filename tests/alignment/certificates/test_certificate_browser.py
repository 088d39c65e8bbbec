"""A lead issues, prints and revokes a certificate in a real browser; accessibility of its pages."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browsing import faults
from tests.factories.certificates import make_qualifying, relabel
from tests.factories.compared_runs import Compared
from tests.factories.rater_quality import polite

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
build_compared = make_qualifying


@pytest.mark.heavy
def test_a_lead_issues_prints_and_revokes_one(
    signed_in: Page, live_server: LiveServer, compared: Compared
) -> None:
    signed_in.goto(f"{live_server.url}/reports/runs/{compared.run.pk}/?split=dev")
    assert faults(signed_in) == []
    signed_in.get_by_label("Valid for (days)").fill("30")
    signed_in.get_by_role("button", name="Issue a certificate on dev").click()
    expect(signed_in.get_by_role("heading", level=1)).to_contain_text("1 of 3 criteria on dev Valid")
    assert faults(signed_in) == []
    relabel(polite(), compared.chat(10))
    signed_in.reload()
    expect(signed_in.get_by_text("today's report still qualifies")).to_be_visible()
    assert faults(signed_in) == []

    signed_in.emulate_media(media="print")
    for hidden in ("header.top", ".crumbs", ".actions", ".foot", ".revoke"):
        expect(signed_in.locator(hidden).first).to_be_hidden()
    expect(signed_in.get_by_text("Public key", exact=True)).to_be_visible()
    signed_in.emulate_media(media="screen", color_scheme="dark")
    assert faults(signed_in) == []

    signed_in.get_by_text("Revoke…").click()
    signed_in.get_by_label("Reason").fill("The labels were wrong")
    signed_in.get_by_role("button", name="Revoke permanently").click()
    expect(signed_in.get_by_role("heading", level=1)).to_contain_text("Revoked")
    expect(signed_in.get_by_text("The labels were wrong")).to_be_visible()
    signed_in.get_by_role("link", name="Certificates").click()
    expect(signed_in.get_by_role("row")).to_have_count(2)
    assert faults(signed_in) == []
