"""Authors propose a redesign; leads carry it out, or refuse it with a reason."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from alignment.models.requests import RedesignProposal
from common.models import InboxItem
from labeling.models.people import User
from tests.factories.compared_runs import Compared
from tests.factories.page_text import words_of

pytestmark = pytest.mark.django_db


def page(client: Client) -> str:
    return words_of(client.get(reverse("alignment:criterion_detail", args=["polite"])))


def propose(client: Client, note: str = "It asks two things.") -> str:
    url = reverse("alignment:redesign_propose", args=["polite"])
    return words_of(client.post(url, {"note": note}, follow=True))


def refuse(client: Client, reason: str) -> Any:
    newest = RedesignProposal.objects.latest("pk")
    url = reverse("alignment:redesign_refuse", args=["polite", newest.pk])
    return client.post(url, {"reason": reason}, follow=True)


def told(user: User) -> list[str]:
    return list(InboxItem.objects.filter(user=user, read_at=None).values_list("kind", flat=True))


def test_a_proposal_reaches_the_leads_and_a_second_one_waits_for_the_answer(
    compared: Compared, lead: Client, author: Client, lead_user: User
) -> None:
    assert "Propose a redesign…" in page(author)
    assert "Proposed. The leads have it in their inbox" in propose(author)
    assert told(lead_user) == ["redesign"]
    assert "a redesign of Polite" in words_of(lead.get("/inbox/"))
    assert "It asks two things." in page(lead)
    redesign = words_of(lead.get(reverse("alignment:redesign", args=["polite"])))
    assert "It asks two things." in redesign
    assert "Propose a redesign…" not in page(author)
    assert "a redesign is proposed already" in propose(author)


def test_a_lead_refuses_with_a_reason_and_the_author_may_propose_again(
    compared: Compared, lead: Client, author: Client, author_user: User
) -> None:
    propose(author)
    assert "Not answered: enter a reason" in words_of(refuse(lead, " "))
    assert told(author_user) == []
    refuse(lead, "One thing, seen twice.")
    assert told(author_user) == ["answered"]
    assert "One thing, seen twice." in page(author)
    assert "answered already" in words_of(refuse(lead, "Again."))
    assert "Proposed." in propose(author)


def test_a_redesign_answers_the_proposal(
    compared: Compared, lead: Client, author: Client, author_user: User
) -> None:
    propose(author)
    retire = reverse("alignment:redesign", args=["polite"]) + "?kind=retire"
    lead.post(retire, {"step": "confirm", "reason": "No longer asked."})
    assert RedesignProposal.objects.get().answer == "redesigned"
    assert told(author_user) == ["answered"]
    assert "Polite is retired" in propose(author)


def test_a_proposal_says_what_should_change(compared: Compared, author: Client) -> None:
    assert "Not proposed: enter a note" in propose(author, "  ")
    assert "of at most 4,000 characters" in propose(author, "x" * 4_001)
    assert not RedesignProposal.objects.exists()


def test_an_author_refuses_no_proposal(compared: Compared, author: Client) -> None:
    propose(author)
    assert refuse(author, "No.").status_code == 404
    assert RedesignProposal.objects.get().answer == "open"
