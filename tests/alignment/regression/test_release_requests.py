"""An author asks for a release; a lead releases, refuses with a reason, or asks for more labels."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from alignment.models.regressions import RegressionTest, ReleaseRequest
from alignment.regression.services.policies import policy_in_force
from alignment.regression.services.tests import RegressionChoice, prompt_test_start
from common.models import InboxItem
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.prompts import PromptVersion
from labeling.models.chats import ChatSet
from labeling.models.people import User
from tests.factories.gate_reference import champion_of, judging
from tests.factories.page_text import words_of
from tests.factories.runs import answering
from tests.stub_endpoint import StubEndpoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stub(settings: Settings) -> Iterator[StubEndpoint]:
    with answering(settings, judging()) as endpoint:
        yield endpoint


@pytest.fixture
def test(golden: ChatSet) -> RegressionTest:
    """It passed."""
    choice = RegressionChoice(golden, "dev", JudgeSpec("direct"), policy_in_force(), on_worker=False)
    started = prompt_test_start(candidate=PromptVersion.objects.get(number=2), choice=choice)
    body: dict[str, Any] = {
        "gate": "pass",
        "reasons": [],
        "more_labels": None,
        "criteria": [],
        "pooled": None,
    }
    decided = RegressionTest.objects.filter(pk=started.pk)
    decided.update(state="done", result="pass", body=body, finished_at=timezone.now())
    return decided.get()


def page(client: Client, test: RegressionTest) -> str:
    return words_of(client.get(reverse("alignment:regression_detail", args=[test.pk])))


def ask(client: Client, test: RegressionTest, note: str = "It reads better.") -> str:
    url = reverse("alignment:regression_ask", args=[test.pk])
    return words_of(client.post(url, {"note": note}, follow=True))


def answer(client: Client, test: RegressionTest, **given: str) -> Any:
    newest = ReleaseRequest.objects.latest("pk")
    url = reverse("alignment:regression_answer", args=[test.pk, newest.pk])
    return client.post(url, given, follow=True)


def told(user: User) -> list[str]:
    return list(InboxItem.objects.filter(user=user, read_at=None).values_list("kind", flat=True))


def test_a_request_reaches_the_leads_and_a_second_one_waits_for_the_answer(
    test: RegressionTest, lead: Client, author: Client, lead_user: User, author_user: User
) -> None:
    assert "Ask for a release" in page(author, test)
    assert "Asked. The leads have it in their inbox" in ask(author, test)
    assert told(lead_user) == ["release"]
    assert "version 2, test" in words_of(lead.get("/inbox/"))
    assert "It reads better." in page(lead, test)
    assert "the release was asked for already" in ask(author, test)
    assert "Ask for a release…" not in page(author, test)
    assert ReleaseRequest.objects.count() == 1


@pytest.mark.parametrize(("choice", "words"), [("refused", "refused"), ("more_labels", "more labels needed")])
def test_a_lead_answers_with_a_reason_and_the_author_may_ask_again(
    test: RegressionTest, lead: Client, author: Client, author_user: User, choice: str, words: str
) -> None:
    ask(author, test)
    assert "Not answered: enter a reason" in words_of(answer(lead, test, answer=choice, reason=" "))
    assert told(author_user) == []
    answer(lead, test, answer=choice, reason="Too few chats on returns.")
    assert told(author_user) == ["answered"]
    shown = page(author, test)
    assert words in shown
    assert "Too few chats on returns." in shown
    assert "answered already" in words_of(answer(lead, test, answer=choice, reason="Again."))
    assert "Asked." in ask(author, test)


def test_an_author_answers_no_request(test: RegressionTest, author: Client) -> None:
    ask(author, test)
    assert answer(author, test, answer="refused", reason="No.").status_code == 404
    assert ReleaseRequest.objects.get().answer == "open"


def test_a_release_answers_the_request(
    test: RegressionTest, lead: Client, author: Client, author_user: User
) -> None:
    ask(author, test)
    lead.post(reverse("alignment:regression_release", args=[test.pk]))
    assert champion_of().number == 2
    assert ReleaseRequest.objects.get().answer == "released"
    assert told(author_user) == ["answered"]


def test_what_cannot_be_released_cannot_be_asked_for(test: RegressionTest, author: Client) -> None:
    RegressionTest.objects.update(state="running", result="")
    assert "is not finished" in ask(author, test)
    assert not ReleaseRequest.objects.exists()
