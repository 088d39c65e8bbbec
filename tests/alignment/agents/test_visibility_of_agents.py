"""An agent reads nothing of a holdout chat, over any tool, whatever its arguments and its token.

Every tool is called with every object of a world in which the held-out chat bears words of its own.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from alignment.agents import services
from alignment.models.misalignments import Misalignment
from alignment.models.regressions import HoldoutOpening, RegressionTest
from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.models.runs import Run
from labeling.models.chats import Chat, ChatSet
from labeling.models.rubric import Criterion
from labeling.people.services.roles import PERMISSIONS
from tests.factories.agents import Agent, token_of
from tests.factories.held_out import NAME, SECRET, build_world
from tests.world import World, rolled_back

pytestmark = [pytest.mark.django_db, pytest.mark.sweep, pytest.mark.heavy]

EXAMPLE = {"chat": NAME, "turns": [1, 2], "value": True, "rationale": "So."}
TEXT = "# Objective\nWas it polite?\n"


@pytest.fixture
def world(db: None) -> World:
    return build_world()


def ids(model: Any) -> list[int]:
    return list(model.objects.order_by("pk").values_list("pk", flat=True))


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool with every object that its arguments can name."""
    keys = [*Criterion.objects.values_list("key", flat=True)]
    for tool in ("list_criteria", "read_rubric", "read_guideline", "list_knowledge", "list_tests"):
        yield tool, {}
    for key in keys:
        for tool in ("read_criterion", "list_prompt_versions", "read_draft", "list_tests"):
            yield tool, {"criterion": key}
        for version, other in product(range(4), repeat=2):
            yield "read_prompt", {"criterion": key, "version": version, "compare_with": other}
    for split, state in product(("", "train", "dev", "holdout"), ("", "all", "closed")):
        yield "list_disagreements", {"split": split, "state": state}
    for test in ids(RegressionTest):
        yield "read_test", {"test": test}
    for chat, key, run in product(ids(Chat), keys[:1], [0, *ids(Run)]):
        yield "read_chat", {"chat_number": chat, "criterion": key, "run": run}
    for examples in ([EXAMPLE], [EXAMPLE | {"chat": str(ids(Chat)[3])}]):
        yield "propose_draft", {"criterion": keys[0], "text": TEXT, "examples": examples}
    for chat_set in ChatSet.objects.values_list("name", flat=True):
        asked = {"criterion": keys[0], "chat_set": chat_set, "reason": "New"}
        yield "test_draft", asked | {"version": 2}


def telling(agent: Agent) -> list[str]:
    """The calls whose answers hold a word of the held-out chat."""
    found = []
    for tool, arguments in calls():
        with rolled_back():
            _, said = agent.answer(tool, **arguments)
            assert not HoldoutOpening.objects.exists()
        if SECRET.lower() in said.lower() or NAME.lower() in said.lower():
            found.append(f"{tool} {arguments}")
    return found


@pytest.mark.parametrize("person", ["author", "lead"])
def test_no_tool_tells_a_word_of_a_holdout_chat(person: str, world: World) -> None:
    """The lead's token has every scope that a token can have."""
    scopes = PERMISSIONS[person]  # type: ignore[index]
    before = Promotion.objects.count(), PromptVersion.objects.count(), Misalignment.objects.count()
    assert telling(Agent(token_of(world.users[person], *scopes))) == []
    assert before == (Promotion.objects.count(), PromptVersion.objects.count(), Misalignment.objects.count())


def test_the_words_are_where_they_should_be(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the scope that agents never have, the same calls tell them: the test above proves something."""
    monkeypatch.setattr(services, "SCOPES", frozenset(PERMISSIONS["lead"]))  # type: ignore[index]
    told = telling(Agent(token_of(world.users["lead"], *PERMISSIONS["lead"])))  # type: ignore[index]
    assert {one.split()[0] for one in told} >= {"read_chat", "read_prompt"}
