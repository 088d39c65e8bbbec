"""Chats pinned beside the prompt editor."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alignment.misalignments.worker import misalignments_refresh
from alignment.models.misalignments import Misalignment
from tests.factories.compared_runs import Compared, text_of
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db

EDITOR = "/criteria/polite/prompt/"


def pins(compared: Compared, *places: int) -> str:
    return ",".join(str(compared.chat(n).pk) for n in places)


@pytest.fixture(autouse=True)
def versions(compared: Compared) -> None:
    first = a_version(polite())
    promote(first)
    run_of(first, compared.chat_set)
    run_of(a_version(polite()), compared.chat_set, wrong=7)


def test_pinned_chats_show_the_verdicts_of_the_version_that_judged_them(
    compared: Compared, author: Client
) -> None:
    page = author.get(f"{EDITOR}?pin={pins(compared, 10, 5)}&version=1")
    pinned = page.context["pinned"]
    assert [one.chat.external_id for one in pinned.chats] == ["chat-10", "chat-5"]
    assert [one.version for one in pinned.chats] == [1, 1]
    assert all(one.human != str(one.verdict.value).lower() for one in pinned.chats)
    shown = text_of(page)
    assert "2 pinned chats" in shown and ">version 1</a>" in shown
    assert "The judge on place 10." in shown and "anna on polite" in shown
    assert "Order 10 is on its way." in shown


def test_without_a_version_the_newest_verdict_is_shown(compared: Compared, author: Client) -> None:
    pinned = author.get(f"{EDITOR}?pin={pins(compared, 5)}").context["pinned"]
    assert (pinned.chats[0].version, pinned.version) == (2, 2)


def test_the_note_of_the_triage_is_shown(compared: Compared, author: Client) -> None:
    misalignments_refresh(compared.run)
    Misalignment.objects.filter(chat=compared.chat(5)).update(note="Wrong *cause* only")
    assert "Note: Wrong *cause* only" in text_of(author.get(f"{EDITOR}?pin={pins(compared, 5)}"))


def test_authors_see_no_holdout_chat(compared: Compared, author: Client, lead: Client) -> None:
    address = f"{EDITOR}?pin={pins(compared, 5, 20)}"
    page = author.get(address)
    assert [one.chat.external_id for one in page.context["pinned"].chats] == ["chat-5"]
    shown = text_of(page)
    assert "1 more is not shown" in shown and "chat-20" not in shown and "place 20" not in shown
    assert len(lead.get(address).context["pinned"].chats) == 2


@pytest.mark.parametrize("query", ["", "?pin=", "?pin=x,-1,٣", "?pin=999999"])
def test_unknown_chats_are_ignored(compared: Compared, author: Client, query: str) -> None:
    page = author.get(EDITOR + query)
    assert page.status_code == 200
    assert not (page.context["pinned"] and page.context["pinned"].chats)


def test_the_other_view_of_the_text_keeps_the_pins(compared: Compared, author: Client) -> None:
    pinned = pins(compared, 5)
    page = text_of(author.get(f"{EDITOR}?pin={pinned}&version=1&as=markdown"))
    assert f"&amp;pin={pinned}&amp;version=1" in page


def test_the_queries_do_not_grow_with_the_pins(compared: Compared, author: Client) -> None:
    counts = []
    for places in ((5,), (1, 2, 3, 5, 6, 7)):
        author.get(f"{EDITOR}?pin={pins(compared, *places)}&version=1")
        with CaptureQueriesContext(connection) as queries:
            author.get(f"{EDITOR}?pin={pins(compared, *places)}&version=1")
        counts.append(len(queries))
    assert counts[0] == counts[1]
