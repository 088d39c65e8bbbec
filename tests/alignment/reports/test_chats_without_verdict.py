"""From "see why 1 chat has no verdict" to that chat."""

import pytest
from django.test import Client
from django.utils import timezone

from evaluation.models.runs import Run, Verdict
from labeling.models.labels import Consensus
from tests.factories.compared_runs import Compared, chat_url, text_of, urls

pytestmark = pytest.mark.django_db


def unread(compared: Compared, *places: int, state: str = "unparsed") -> None:
    rows = Verdict.objects.filter(criterion__key="polite", chat__in=[compared.chat(n) for n in places])
    rows.update(state=state, value=None)
    Run.objects.update(finished_at=timezone.now())


def address(compared: Compared) -> str:
    return f"/reports/runs/{compared.run.pk}/polite/no-verdict/"


def test_a_single_chat_opens_at_once(compared: Compared, lead: Client) -> None:
    unread(compared, 5)
    report = text_of(lead.get(urls(compared)["report"]))
    assert f'href="{address(compared)}"' in report and "ee why 1 chat has no verdict" in report
    answer = lead.get(address(compared))
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{chat_url(compared, 5)}#verdict")


def test_several_chats_are_listed_with_the_reason(compared: Compared, lead: Client) -> None:
    unread(compared, 5, 6)
    unread(compared, 7, state="refused")
    page = lead.get(address(compared))
    assert [(one.chat_id, one.state) for one in page.context["items"]] == [
        ("chat-5", "unparsed"),
        ("chat-6", "unparsed"),
        ("chat-7", "refused"),
    ]
    assert "<h1>No verdict</h1>" in text_of(page)


def test_not_applicable_is_a_verdict_and_unlabelled_chats_are_not_counted(
    compared: Compared, lead: Client
) -> None:
    unread(compared, 5, state="read")
    unread(compared, 6, 7)
    Consensus.objects.filter(chat=compared.chat(6)).delete()
    Run.objects.update(finished_at=timezone.now())
    assert lead.get(address(compared)).headers["Location"].startswith(chat_url(compared, 7))


def test_authors_see_no_holdout_chat(compared: Compared, author: Client) -> None:
    unread(compared, 5, 20, 40)
    assert author.get(address(compared)).headers["Location"].startswith(chat_url(compared, 5))


def test_an_unknown_criterion_is_not_found(compared: Compared, lead: Client) -> None:
    assert lead.get(address(compared).replace("polite", "nonsense")).status_code == 404
