"""An agent tests its draft: the gate decides on dev, and nothing is released."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from alignment.models.regressions import HoldoutOpening, RegressionTest
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.chats import ChatSet
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Criterion
from tests.factories.agents import Agent, token_of
from tests.factories.gate_reference import MARK, carried_out, champion_of, judging, make_golden
from tests.factories.runs import answering

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = f"# Context\nA shop.\n\n# Objective\nIs polite so?\n\n# Style\n{MARK}\n"
ASKED = {"criterion": "polite", "chat_set": "golden", "reason": "Closer reading"}


@pytest.fixture
def golden(transactional_db: None, settings: Settings) -> Iterator[ChatSet]:
    with answering(settings, judging(champion=20, wrong={MARK: 0})):
        chat_set = make_golden()
        champions_ensure(criteria=list(Criterion.objects.all()), by=None)
        yield chat_set


@pytest.fixture
def agent(golden: ChatSet, author_user: User) -> Agent:
    return Agent(token_of(author_user))


def test_a_draft_becomes_a_version_that_the_gate_decides_on(agent: Agent, author_user: User) -> None:
    assert "There is no draft" in agent.refusal("test_draft", **ASKED)
    agent.read("propose_draft", criterion="polite", text=TEXT)
    started = agent.read("test_draft", **ASKED)
    assert (started["state"], started["split"], started["gate"]) == ("running", "dev", None)
    assert f"test {started['test']} is not decided yet" in agent.refusal("test_draft", **ASKED, version=2)
    carried_out(RegressionTest.objects.get())
    decided = agent.read("read_test", test=started["test"])
    assert decided["gate"] == "pass" and decided["criteria"][0]["fixed"] == 20
    version = PromptVersion.objects.get(number=2)
    assert (version.author, version.origin, version.reason) == (author_user, "agent", "Closer reading")
    # Nothing is released, no holdout is opened, and the audit log has every step as the agent's.
    assert champion_of().number == 1
    assert not HoldoutOpening.objects.exists()
    for verb in ("draft proposed", "draft saved", "draft tested"):
        event = AuditEvent.objects.get(verb=verb)
        assert event.actor == author_user and event.token_name == "agent" and event.request_id


def test_what_prevents_a_test_is_said(agent: Agent) -> None:
    agent.read("propose_draft", criterion="polite", text=TEXT)
    assert "no chat set 'nothing'" in agent.refusal("test_draft", **ASKED | {"chat_set": "nothing"})
    assert "say what is new" in agent.refusal("test_draft", **ASKED | {"reason": ""})
    assert "already the champion" in agent.refusal("test_draft", **ASKED, version=1)
    assert not RegressionTest.objects.exists()
    assert PromptVersion.objects.count() == 1  # a version that could not be tested was not saved
