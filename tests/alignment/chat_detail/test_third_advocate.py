"""A further advocate in the registry of roles appears on the pages without a change to them."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from labeling.models.chats import Chat
from tests.factories.compared_runs import text_of
from tests.factories.runs import answering, block, evaluate, the_run, workspace
from tests.factories.third_advocate import third_advocate
from tests.stub_endpoint import Body, StubReply, asked_keys, asked_text

pytestmark = pytest.mark.django_db(transaction=True)


def debating(body: Body) -> StubReply:
    """The analyst alone quotes what nobody wrote."""
    text = asked_text(body)
    if "The text analyst." in text:
        return StubReply('The case rests on [m1: "I have told the shop"].')
    if "Answers to argue for" in text:
        return StubReply("A case.")
    return block(dict.fromkeys(asked_keys(body), True), prose="Weighed.")


@pytest.fixture
def debated(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Chat:
    third_advocate(monkeypatch)
    chat = workspace("polite", chats=1).members.get().chat
    with answering(settings, debating):
        evaluate("--set", "calibration", "--engine", "debate")
    return chat


def test_the_chat_page_shows_every_advocate(debated: Chat, lead: Client) -> None:
    page = lead.get(reverse("alignment:chat", args=[the_run().pk, debated.pk]))
    steps = page.context["focus"]["steps"]
    assert [step.title for step in steps] == [
        "Customer critic",
        "Support defender",
        "Neutral analyst",
        "Judge",
    ]
    assert [step.argued for step in steps] == [False, True, True, None]
    shown = " ".join(text_of(page).split())
    assert "Critic, defender and analyst argue independently" in shown
    assert "The Judge sided with the defender." in shown
    assert 'class="steps n4"' in shown


def test_the_report_counts_every_advocate(debated: Chat, lead: Client) -> None:
    shown = text_of(lead.get(reverse("alignment:report_run", args=[the_run().pk])))
    for side in ("the customer critic", "the support defender", "the neutral analyst"):
        assert f"Judge sided with {side}" in shown
    assert "Analyst quoted text that is not in the chat" in shown
    assert "Critic quoted text" not in shown
