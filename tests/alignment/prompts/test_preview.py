"""The preview shows the very messages that the endpoint then receives, and sends none."""

from decimal import Decimal
from math import ceil
from pathlib import Path

import pytest
from pytest_django import Settings

from alignment.prompts.tries.services import TryRefused, prompt_preview, try_start
from evaluation.core.tokens import tokens_at_most
from evaluation.core.types import Windows
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.judges import Judge
from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.models.runs import ModelCall, Run
from evaluation.prompts.services.examples import ExampleChoice, PromptRefused, prompt_version_add
from evaluation.runs.worker.preview import PLACEHOLDERS, Preview
from labeling.models.chats import Chat, ChatSetMember
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.rows import make_set
from tests.factories.runs import MODEL, answering, point_at
from tests.factories.tries import (
    ANSWER,
    DRAFT,
    MARK,
    carried_out,
    champion,
    drafted,
    labelled,
    on_chat,
    polite,
    profile,
)
from tests.stub_endpoint import Body, StubReply, asked_schema

pytestmark = pytest.mark.django_db(transaction=True)

Sent = tuple[tuple[str, str], ...]
ROLES = {
    "direct": ["direct", "formatter"],
    "reflection": ["direct", "reflector", "formatter"],
    "debate": ["customer", "support", "judge", "formatter"],
}


@pytest.fixture(autouse=True)
def nowhere(settings: Settings) -> None:
    point_at(settings, "http://127.0.0.1:9/v1")


def sent(body: Body) -> Sent:
    return tuple((message["role"], message["content"]) for message in body["messages"])


def echo(shown: Preview) -> dict[Sent, str]:
    """The placeholder of each answer in the preview, by messages."""
    return {call.messages: PLACEHOLDERS[call.role] for call in shown.calls}


@pytest.mark.parametrize("engine", ROLES)
@pytest.mark.parametrize("samples", [1, 3])
def test_what_is_shown_is_what_is_sent_byte_for_byte(
    tmp_path: Path, settings: Settings, author_user: User, engine: str, samples: int
) -> None:
    labelled(tmp_path, judged=False)
    drafted(author_user)
    choice = on_chat("c-03", profile=profile("this", choice=JudgeSpec(engine, samples=samples)))  # type: ignore[arg-type]
    shown = prompt_preview(criterion=polite(), author=author_user, choice=choice)
    assert [call.role for call in shown.calls] == ROLES[engine]
    answers = echo(shown)
    # An endpoint that answers what the preview puts in an answer's place.
    with answering(settings, lambda body: StubReply(answers.get(sent(body), "?"))) as stub:
        assert prompt_preview(criterion=polite(), author=author_user, choice=choice) == shown
        assert stub.count == 0
        carried_out(try_start(criterion=polite(), author=author_user, choice=choice))
        received = stub.requests
    reasoning = [sent(body) for body in received if asked_schema(body) is None]
    expected = [call.messages for call in shown.calls if not call.if_needed for _ in range(call.times)]
    assert sorted(reasoning) == sorted(expected)
    assert len(reasoning) == shown.count
    assert {call.messages for call in shown.calls} <= {sent(body) for body in received}
    assert all(MARK in "".join(text for _, text in messages) for messages in reasoning)


def test_the_placeholders_of_a_debate_are_its_briefs_and_the_judges_answer(
    tmp_path: Path, author_user: User
) -> None:
    labelled(tmp_path, judged=False)
    choice = on_chat("c-03", profile=profile("debate", choice=JudgeSpec("debate")))
    assert prompt_preview(criterion=polite(), author=author_user, choice=choice).placeholders == (
        "(Customer critic: brief)",
        "(Support defender: brief)",
        "(Judge: answer)",
    )


def test_a_long_chat_is_shown_part_by_part(tmp_path: Path, author_user: User) -> None:
    labelled(tmp_path, judged=False)
    recipe = JudgeSpec("direct", windows=Windows(tokens=14, overlap=0))
    shown = prompt_preview(
        criterion=polite(),
        author=author_user,
        choice=on_chat("c-03", profile=profile("parts", choice=recipe)),
    )
    assert [(call.part, call.role) for call in shown.calls if not call.if_needed] == [
        (0, "direct"),
        (1, "direct"),
    ]
    assert shown.parts == 2


def test_nothing_is_kept_of_a_preview(tmp_path: Path, author_user: User) -> None:
    labelled(tmp_path, judged=False)
    drafted(author_user)
    prompt_preview(criterion=polite(), author=author_user, choice=on_chat("c-03"))
    assert not Judge.objects.exists()
    assert not Run.objects.exists()
    assert not ModelCall.objects.exists()
    assert not PromptVersion._base_manager.filter(text=DRAFT).exists()


def test_tokens_and_cost_are_those_of_the_estimate(
    tmp_path: Path, settings: Settings, author_user: User
) -> None:
    labelled(tmp_path, judged=False)
    prices = tmp_path / "prices.json"
    prices.write_text(f'{{"{MODEL}": {{"input": 1, "output": 2}}}}')
    settings.LACE_PRICES = str(prices)
    shown = prompt_preview(criterion=polite(), author=author_user, choice=on_chat("c-03"))
    direct, formatter = shown.calls
    assert (direct.completion_tokens, formatter.if_needed) == (300 + 2 * 350, True)
    tokens = ceil(sum(tokens_at_most(text) for _, text in direct.messages))
    assert direct.prompt_tokens == tokens
    assert direct.cost_usd == Decimal(tokens + 2 * direct.completion_tokens) / 1_000_000
    assert shown.cost_usd == direct.cost_usd


def test_the_criteria_of_the_same_call_are_named(tmp_path: Path, author_user: User) -> None:
    labelled(tmp_path, judged=False)
    shown = prompt_preview(criterion=polite(), author=author_user, choice=on_chat("c-03"))
    assert shown.criteria == ("polite", "exact")


def test_a_hard_criterion_is_asked_alone(tmp_path: Path, author_user: User) -> None:
    labelled(tmp_path, tier="context", judged=False)
    shown = prompt_preview(criterion=polite(), author=author_user, choice=on_chat("c-03"))
    assert shown.criteria == ("polite",)


def test_without_a_draft_the_champion_is_shown(tmp_path: Path, settings: Settings, author_user: User) -> None:
    with answering(settings, ANSWER):
        labelled(tmp_path)
    shown = prompt_preview(criterion=polite(), author=author_user, choice=on_chat("c-03"))
    system = shown.calls[0].messages[0][1]
    assert champion().text.split("\n")[-2] in system


def test_a_draft_that_no_version_may_be_is_refused_with_its_reason(tmp_path: Path, author_user: User) -> None:
    labelled(tmp_path, judged=False)
    drafted(author_user, "# Objective\nIs it so?\n\n# Response\nVERDICTS\n")
    with pytest.raises(PromptRefused, match="VERDICTS block"):
        prompt_preview(criterion=polite(), author=author_user, choice=on_chat("c-03"))


@pytest.mark.parametrize("key", ["polite", "exact"])
def test_no_example_is_shown_on_a_chat_that_the_author_may_no_longer_read(
    tmp_path: Path, author_user: User, lead_user: User, key: str
) -> None:
    golden = labelled(tmp_path, judged=False)
    train = Chat.objects.get(external_id="c-10")
    criterion = Criterion.objects.get(key=key)
    made = prompt_version_add(
        criterion=criterion,
        text=f"# Objective\nIs {key} so?",
        examples=[ExampleChoice(train, 1, 2, True, "It thanks.")],
    )
    Promotion.objects.create(criterion=criterion, version=made)
    assert "This is case c-10" in str(sent_of(author_user))
    ChatSetMember.objects.create(chat_set=make_set(golden.rubric), chat=train, split="holdout", position=1)
    with pytest.raises(TryRefused, match="an example on a chat that you cannot see") as refused:
        sent_of(author_user)
    assert "c-10" not in str(refused.value)
    assert "This is case c-10" in str(sent_of(lead_user))


def sent_of(person: User) -> tuple[Sent, ...]:
    shown = prompt_preview(criterion=polite(), author=person, choice=on_chat("c-03"))
    return tuple(call.messages for call in shown.calls)


@pytest.mark.parametrize("case", ["c-12", "c-15"])
def test_a_chat_of_the_holdout_is_no_chat_for_anybody(
    tmp_path: Path, author_user: User, lead_user: User, case: str
) -> None:
    labelled(tmp_path, judged=False)
    for person in (author_user, lead_user):
        with pytest.raises(TryRefused, match="the chat is not in train or dev"):
            prompt_preview(criterion=polite(), author=person, choice=on_chat(case))
