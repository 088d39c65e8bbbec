"""Counts of the disagreements page: the page's own, and the fragment fetched after a change."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from alignment.misalignments.queries.runs import RESCAN_ON_REQUEST_AFTER
from alignment.misalignments.worker import misalignments_refresh
from alignment.models.misalignments import Misalignment, MisalignmentCount
from labeling.models.people import Role, User
from tests.factories.compared_runs import JUDGE, Compared, add_chats, text_of
from tests.factories.rows import make_user
from tests.factories.triage import LIST, item_on, triage

pytestmark = pytest.mark.django_db

COUNTS = f"{LIST}counts/"
POLITE = "?criterion=polite"


def words_of(client: Client, address: str) -> str:
    """The visible words at an address, each run of whitespace as one space."""
    return " ".join(re.sub(r"<[^>]+>", " ", text_of(client.get(address))).split())


def test_the_page_says_how_many_of_the_filtered_items_are_triaged(
    compared: Compared, lead: Client, lead_user: User
) -> None:
    misalignments_refresh(compared.run)
    assert "8 disagreements in this filter 0 of 8 triaged" in words_of(lead, LIST + POLITE)
    triage(lead, item_on(5), cause="judge", owner=lead_user.username)
    triage(lead, item_on(10), cause="label")
    assert "8 disagreements in this filter 2 of 8 triaged" in words_of(lead, LIST + POLITE)
    mine = words_of(lead, LIST + POLITE + "&owner=me")
    assert "1 disagreement in this filter 1 of 1 triaged" in mine


@pytest.mark.parametrize("query", ["&cause=none", "&cause=judge", "&state=open", "&state=triaged"])
def test_a_filter_on_cause_or_triage_leaves_no_progress_to_show(
    compared: Compared, lead: Client, query: str
) -> None:
    misalignments_refresh(compared.run)
    triage(lead, item_on(5), cause="judge")
    shown = words_of(lead, LIST + POLITE + query)
    assert "in this filter" in shown and "triaged Verdicts" not in shown


def test_a_change_of_one_item_changes_heading_and_causes_in_the_pages_filter(
    compared: Compared, lead: Client
) -> None:
    misalignments_refresh(compared.run)
    untriaged = f"{COUNTS}{POLITE}&cause=none"
    assert "8 disagreements in this filter" in words_of(lead, untriaged)
    assert "Polite 8 0 0 0 0 0 0 0 8" in words_of(lead, untriaged)
    for n in (5, 10, 15):
        triage(lead, item_on(n), cause="judge")
    after = words_of(lead, untriaged)
    assert "5 disagreements in this filter" in after and "Polite 8 3 0 0 0 0 0 0 5" in after
    assert "Refine the prompt Polite 3 of 3 triaged" in after


def test_a_filter_that_a_change_has_emptied_counts_none(compared: Compared, lead: Client) -> None:
    misalignments_refresh(compared.run)
    Misalignment.objects.exclude(pk=item_on(5).pk).update(cause="other", state="triaged")
    assert "1 disagreement in this filter" in words_of(lead, f"{COUNTS}{POLITE}&cause=none")
    triage(lead, item_on(5), cause="judge")
    assert "0 disagreements in this filter" in words_of(lead, f"{COUNTS}{POLITE}&cause=none")


def test_the_fragment_counts_what_its_reader_may_see(
    compared: Compared, lead: Client, author: Client
) -> None:
    misalignments_refresh(compared.run)
    assert "8 disagreements in this filter" in words_of(lead, COUNTS + POLITE)
    assert "6 disagreements in this filter" in words_of(author, COUNTS + POLITE)  # two are held out
    rater = Client()
    rater.force_login(make_user("mara", Role.RATER))
    assert rater.get(COUNTS).status_code == 404
    assert lead.post(COUNTS).status_code == 405


def test_the_fragment_links_as_the_page_does(compared: Compared, lead: Client) -> None:
    misalignments_refresh(compared.run)
    query = "?owner=nobody&item=1&page=1"
    links = [
        re.findall(r'href="(\?[^"]*criterion=[^"]*)"', text_of(lead.get(address + query)))
        for address in (COUNTS, LIST)
    ]
    assert links[0] and set(links[0]) <= set(links[1])


def test_the_fragment_has_a_constant_number_of_queries(compared: Compared, lead: Client) -> None:
    misalignments_refresh(compared.run)
    lead.get(COUNTS)
    with CaptureQueriesContext(connection) as few:
        lead.get(f"{COUNTS}?owner=me")
    add_chats(compared, to=80)
    misalignments_refresh(compared.run)
    with CaptureQueriesContext(connection) as many:
        lead.get(f"{COUNTS}?owner=me")
    assert len(many) == len(few) <= 12


def test_an_item_whose_label_has_just_changed_leaves_the_count_when_the_page_is_opened(
    compared: Compared, lead: Client
) -> None:
    misalignments_refresh(compared.run)
    item = item_on(5)
    decision = {"value": str(JUDGE["polite"](5)).lower(), "reason": "Seen again.", "seen": ""}
    assert lead.post(f"/adjudication/{item.chat_id}/polite/", decision).status_code == 302
    MisalignmentCount.objects.update(at=timezone.now() - RESCAN_ON_REQUEST_AFTER)
    assert 'id="scan"' in text_of(lead.get(LIST))
    assert lead.post(LIST, headers={"HX-Request": "true"}).headers["HX-Refresh"] == "true"
    item.refresh_from_db()
    assert item.state == "closed"
    assert "7 disagreements in this filter" in words_of(lead, LIST + POLITE)


def test_a_browser_keeps_no_copy_of_the_page_for_its_back_button(compared: Compared, lead: Client) -> None:
    assert "no-store" in lead.get(LIST)["Cache-Control"]
