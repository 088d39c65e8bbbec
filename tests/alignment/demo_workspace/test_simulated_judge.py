"""The simulated judge: known error rates, the same answers each time, nowhere outside demo workspaces."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from alignment.demo_workspace.core.compose import ComposedChat, passes_when
from alignment.demo_workspace.queries import chat_topics, composed_chats, demo_answers
from alignment.topic_prompt.core import read_topic, topic_messages, topics_of
from common.problems import InputProblem
from evaluation.core.transcript_fencing import chat_block
from evaluation.core.types import Chat, Criterion, Message, Sampling, Setup
from evaluation.engines.core.verdicts import read_answer
from evaluation.gateway.current import current_endpoint
from evaluation.gateway.endpoints import SIMULATED, Endpoint
from evaluation.gateway.simulated import SIMULATED_MODEL, answer_text, simulated_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.prompts.core import reasoning_messages
from evaluation.runs.services.runs import RunChoice, run_start
from labeling.models.chats import ChatSet
from labeling.models.people import Workspace
from labeling.models.rubric import Rubric

SECRET = b"fence"
RULE = "- **Half right is wrong:** a promise that no article makes is True."
KEY = "stated_wrong_fact"


@pytest.fixture(scope="module")
def chats() -> list[ComposedChat]:
    return composed_chats(first_day=datetime(2026, 10, 1, tzinfo=UTC))


def as_core(chat: ComposedChat) -> Chat:
    rows = enumerate(chat.messages, 1)
    return Chat(chat.id, tuple(Message(n, row["role"], row["content"]) for n, row in rows))  # type: ignore[arg-type]


def asked(chat: Chat, *, rule: str = "", key: str = KEY, role: str = "direct") -> tuple[str, Criterion]:
    """What the simulated judge answers to one criterion's prompt."""
    prompt = f"# Objective\nWrong?\n\n{rule}\n- **Silence:** no.\n"
    criterion = Criterion(key, "Wrong?", "", "context", passes_when(key), True, prompt, ())
    sampling = Sampling(SIMULATED, SIMULATED_MODEL, 0.0, 100, 100)
    setup = Setup(engine="direct", roles={role: sampling})
    system, user = reasoning_messages(
        role=role, chat=chat, criteria=[criterion], setup=setup, fence_secret=SECRET
    )
    return answer_text(system=system.text, user=user.text, answers=demo_answers()), criterion


def verdicts(chats: list[ComposedChat], *, rule: str = "") -> Iterator[tuple[bool | None, bool | None]]:
    """Truth and verdict on each chat."""
    for chat in chats:
        text, criterion = asked(as_core(chat), rule=rule)
        values = read_answer(text, criteria=[criterion]).values
        if KEY in values:
            yield chat.truth[KEY], values[KEY]


def rates(chats: list[ComposedChat], *, rule: str = "") -> tuple[float, float]:
    """Share of missed faults, and of false alarms."""
    pairs = list(verdicts(chats, rule=rule))
    missed = [verdict is False for truth, verdict in pairs if truth is True]
    alarms = [verdict is True for truth, verdict in pairs if truth is False]
    return sum(missed) / len(missed), sum(alarms) / len(alarms)


def test_a_version_errs_at_its_known_rates(chats: list[ComposedChat]) -> None:
    missed, alarms = rates(chats)
    assert missed == pytest.approx(0.42, abs=0.12)
    assert alarms == pytest.approx(0.05, abs=0.04)


def test_the_rule_of_a_later_version_makes_it_better(chats: list[ComposedChat]) -> None:
    missed, _ = rates(chats, rule=RULE)
    assert missed == pytest.approx(0.07, abs=0.06)


def test_it_gives_the_same_answer_each_time(chats: list[ComposedChat]) -> None:
    assert asked(as_core(chats[3]))[0] == asked(as_core(chats[3]))[0]


def test_it_quotes_the_chat_in_prose_before_its_block(chats: list[ComposedChat]) -> None:
    text, _ = asked(as_core(chats[0]))
    assert "Evidence: [m" in text
    assert text.splitlines()[-2] == "VERDICTS"


def test_the_prompt_holds_no_truth(chats: list[ComposedChat]) -> None:
    chat = next(chat for chat in chats if chat.truth[KEY])
    changed = chat_block(chat=as_core(chat), secret=SECRET)
    assert "truth" not in changed
    assert KEY not in changed


def test_it_gives_no_verdict_on_a_chat_that_is_not_the_demos() -> None:
    text, criterion = asked(Chat("x", (Message(1, "user", "Hi"), Message(2, "assistant", "Hello"))))
    assert "knows only the chats of this demo" in text
    assert not read_answer(text, criteria=[criterion]).values


# ---------- where it may answer ----------


@pytest.mark.django_db
def test_a_demo_workspace_asks_the_simulated_judge_whatever_the_settings_say(settings: object) -> None:
    settings.OPENAI_API_KEY = "sk-paid"  # type: ignore[attr-defined]
    assert not current_endpoint().simulated
    Workspace.objects.update_or_create(id=1, defaults={"demo": True})
    assert current_endpoint() == simulated_endpoint()


@pytest.mark.django_db
def test_elsewhere_it_has_no_endpoint_and_starts_no_run() -> None:
    with pytest.raises(InputProblem, match="demo workspaces only"):
        simulated_endpoint()
    rubric = Rubric.objects.create(name="r")
    chat_set = ChatSet.objects.create(name="s", rubric=rubric)
    endpoint = Endpoint(id=SIMULATED, base_url=SIMULATED, api_key="", embedded=False)
    real = Endpoint(id="http://model/v1", base_url="http://model/v1", api_key="", embedded=False)
    for judge, where in ((JudgeSpec("direct"), endpoint), (JudgeSpec("direct", model=SIMULATED_MODEL), real)):
        with pytest.raises(InputProblem, match="demo workspaces only"):
            run_start(chat_set=chat_set, judge=judge, run=RunChoice(), endpoint=where)


def topic_of(messages: list[dict[str, str]], topics: str = "") -> str | None:
    """The topic that the simulated judge answers to the topic prompt."""
    listed = topics_of(topics or "".join(f"{topic}: any\n" for topic in sorted(set(chat_topics().values()))))
    system, user = topic_messages(listed, messages, secret=SECRET)
    answer = answer_text(system=system.text, user=user.text, answers=demo_answers())
    return read_topic(answer, listed)


def test_it_gives_topics_with_a_few_errors_and_unknown_to_chats_that_are_not_the_demos(
    chats: list[ComposedChat],
) -> None:
    pairs = [(chat.topic, topic_of([dict(one) for one in chat.messages])) for chat in chats[:200]]
    right = sum(given == answered for given, answered in pairs)
    assert 176 <= right < 200
    assert pairs == [(chat.topic, topic_of([dict(one) for one in chat.messages])) for chat in chats[:200]]
    stranger = [{"role": "user", "content": "Is it raining in your town?"}]
    assert topic_of(stranger, "returns: sending back\ndelivery: where it is") == "unknown"
