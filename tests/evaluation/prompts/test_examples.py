"""A prompt version may carry worked examples: from training chats only, few, mixed, and never changed."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from common.problems import InputProblem
from evaluation.core.hashing import text_hash
from evaluation.models.prompts import FewShotExample, Promotion, PromptVersion
from evaluation.prompts.core.example_lines import advice
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.examples import ExampleChoice, PromptRefused, prompt_version_add
from evaluation.prompts.services.versions import champions_ensure, prompt_promote
from labeling.chats.core.transcript import near_hash
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric
from tests.factories.rows import make_chat, make_criterion, make_rubric, make_set

pytestmark = pytest.mark.django_db

TEXT = "# Objective\nIs polite so?\n\nRude words count.\n"
WORDS = "The delivery came far too late and the bot said nothing that would have helped anybody at the door"


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite")


@pytest.fixture
def criterion(rubric: Rubric) -> Criterion:
    return rubric.criteria.get()


@pytest.fixture
def train(rubric: Rubric) -> ChatSet:
    """Six training chats of six messages each."""
    chats = [long_chat(f"t{n}", f"case {n}") for n in range(6)]
    return make_set(rubric, *chats, name="training", split="train")


def long_chat(external_id: str, said: str, *, messages: int = 8) -> Chat:
    turns = [("assistant" if n % 2 else "user", f"{said}, message {n}") for n in range(messages)]
    return make_chat(external_id, messages=turns)


def near_chat(external_id: str, words: str) -> Chat:
    """A chat with its near hash, as an import stores it."""
    chat = make_chat(external_id, messages=[("user", words), ("assistant", "Sorry.")])
    chat.near_hash = near_hash([message["content"] for message in chat.messages])
    chat.save(update_fields=["near_hash"])
    return chat


def example(chat: Chat | str = "t0", **changes: Any) -> ExampleChoice:
    row = chat if isinstance(chat, Chat) else Chat.objects.get(external_id=chat)
    return replace(ExampleChoice(row, 1, 3, True, "The bot says thank you."), **changes)


def add(criterion: Criterion, *examples: ExampleChoice, text: str = TEXT, **more: Any) -> PromptVersion:
    return prompt_version_add(criterion=criterion, text=text, examples=examples, **more)


def refused(criterion: Criterion, *examples: ExampleChoice, text: str = TEXT) -> str:
    before = PromptVersion.objects.count(), FewShotExample.objects.count()
    with pytest.raises(PromptRefused) as caught:
        add(criterion, *examples, text=text)
    assert (PromptVersion.objects.count(), FewShotExample.objects.count()) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---------- versions ----------


def test_a_version_takes_the_next_number_and_is_no_champion(
    criterion: Criterion, train: ChatSet, author_user: User
) -> None:
    first = add(criterion, reason="Clearer", author=author_user)
    assert (first.number, first.origin, first.reason) == (2, "author", "Clearer")
    assert first.author == author_user
    second = add(criterion, example("t0"), example("t1", value=False), base=first)
    assert (second.number, second.base) == (3, first)
    assert champions(criteria=[criterion])[criterion.pk].number == 1


def test_a_first_draft_never_becomes_the_champion_by_being_first(criterion: Criterion) -> None:
    assert add(criterion).number == 2
    assert (
        champions_ensure(criteria=[criterion], by=None)[criterion.pk].origin == PromptVersion.Origin.GENERATED
    )


def test_examples_are_kept_in_their_order_with_turns_value_and_rationale(
    criterion: Criterion, train: ChatSet
) -> None:
    version = add(criterion, example("t3", first_turn=2, last_turn=7), example("t1", value=False))
    kept = version.examples.values_list("position", "chat__external_id", "first_turn", "last_turn", "value")
    assert list(kept) == [(0, "t3", 2, 7, True), (1, "t1", 1, 3, False)]
    assert set(version.examples.values_list("rationale", flat=True)) == {"The bot says thank you."}


def test_the_hash_covers_text_and_examples_and_stays_the_texts_without_any(
    criterion: Criterion, train: ChatSet
) -> None:
    assert add(criterion).content_hash == text_hash(TEXT)
    one, two = example("t0"), example("t1", value=False)
    hashes = {
        add(criterion, *examples).content_hash
        for examples in (
            (one,),
            (one, two),
            (replace(one, value=False),),
            (replace(one, rationale="Else."),),
            (replace(one, last_turn=4),),
            (example("t2"),),
        )
    }
    assert len(hashes) == 6
    assert text_hash(TEXT) not in hashes


def test_the_same_text_and_examples_again_are_the_version_there_is(
    criterion: Criterion, train: ChatSet
) -> None:
    one, two = example("t0"), example("t1", value=False)
    version = add(criterion, one, two)
    assert add(criterion, two, one, reason="another order") == version
    assert PromptVersion.objects.filter(criterion=criterion).count() == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" \n", "is empty"),
        ("x" * 100_001, "longer than 100,000 characters"),
        ("# Response\nEnd with\n\nVERDICTS\npolite: TRUE", "VERDICTS block"),
    ],
)
def test_a_prompt_that_cannot_be_one_is_refused(criterion: Criterion, text: str, problem: str) -> None:
    assert problem in refused(criterion, text=text)


def test_a_section_of_examples_written_by_hand_is_kept_word_for_word(criterion: Criterion) -> None:
    text = f"{TEXT}\n## Examples\nm02 bot| Fine.\n\nVERDICTS\npolite: TRUE\n"
    assert add(criterion, text=text).text == text


# ---------- where examples may come from ----------


@pytest.mark.parametrize("split", ["dev", "holdout"])
def test_a_chat_that_judges_are_measured_on_in_any_set_is_refused(
    criterion: Criterion, train: ChatSet, rubric: Rubric, split: str
) -> None:
    make_set(rubric, Chat.objects.get(external_id="t0"), name="other", split=split)
    assert refused(criterion, example("t0")).startswith(f"examples[0].chat_id: 't0' is {split} in a set")


def test_a_chat_of_no_training_split_is_refused(criterion: Criterion, train: ChatSet) -> None:
    problem = refused(criterion, example("t1", value=False), example(long_chat("free", "free")))
    assert problem.startswith("examples[1].chat_id: 'free' is train in no set")


def test_a_chat_with_the_messages_of_a_measured_one_is_refused_without_naming_it(
    criterion: Criterion, train: ChatSet, rubric: Rubric
) -> None:
    make_set(rubric, long_chat("secret", "case 0"), name="held", split="holdout")
    problem = refused(criterion, example("t0"))
    assert "'t0' has the same messages as a dev or holdout chat" in problem
    assert "secret" not in problem


def test_a_chat_that_is_nearly_a_measured_one_is_refused(
    criterion: Criterion, train: ChatSet, rubric: Rubric
) -> None:
    near = near_chat("near", WORDS)
    ChatSetMember.objects.create(chat_set=train, chat=near, split="train", position=99)
    held = near_chat(
        "held", "Something else altogether, about a basket of eggs and a lost umbrella in Bremen"
    )
    make_set(rubric, held, name="held", split="holdout")
    assert add(criterion, example(near, last_turn=2)).number == 2
    assert near.near_hash is not None
    for bits in (0b1, 0b11, 0b111):
        held.near_hash = near.near_hash ^ bits
        held.save(update_fields=["near_hash"])
        assert "is nearly the same as" in refused(criterion, example(near, last_turn=2, rationale="New."))
    held.near_hash = near.near_hash ^ 0b1111
    held.save(update_fields=["near_hash"])
    assert add(criterion, example(near, last_turn=2, rationale="New.")).number == 3


def test_a_chat_is_an_example_once_under_any_id(criterion: Criterion, train: ChatSet) -> None:
    twin = long_chat("twin", "case 0")
    ChatSetMember.objects.create(chat_set=train, chat=twin, split="train", position=99)
    for other in ("t0", "twin"):
        problem = refused(criterion, example("t0"), example(other, value=False))
        assert problem == f"examples[1].chat_id: '{other}' is already an example"


@pytest.mark.heavy
def test_the_number_of_queries_does_not_grow_with_examples_or_chats(
    criterion: Criterion, train: ChatSet, rubric: Rubric
) -> None:
    champions_ensure(criteria=[criterion], by=None)

    def queries(*examples: ExampleChoice) -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            add(criterion, *examples)
        return len(captured)

    one = queries(example("t0"))
    make_set(rubric, *(near_chat(f"d{n}", f"{WORDS} {n}") for n in range(50)), name="dev", split="dev")
    assert queries(*(example(f"t{n}", value=n % 2 == 0) for n in range(4))) == one


# ---------- what an example may be ----------


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"first_turn": 0}, "examples[0].turns: must be the first and the last of turns 1 to 8, not 0 to 3"),
        ({"first_turn": 4}, "examples[0].turns: must be the first"),
        ({"last_turn": 9}, "examples[0].turns: must be the first"),
        ({"last_turn": 7}, "examples[0].turns: are 7 messages; an excerpt has 6 at most"),
        ({"value": None}, "examples[0].value: must be true or false"),
        ({"rationale": " "}, "examples[0].rationale: must not be blank"),
        ({"rationale": "x" * 2001}, "examples[0].rationale: is longer"),
    ],
)
def test_an_example_names_its_turns_its_answer_and_why(
    criterion: Criterion, train: ChatSet, changes: dict[str, Any], problem: str
) -> None:
    assert refused(criterion, example("t0", **changes)).startswith(problem)


def test_not_applicable_may_be_shown_where_the_criterion_allows_it(rubric: Rubric, train: ChatSet) -> None:
    may = make_criterion("upset", rubric=rubric, allow_na=True)
    version = add(may, example("t0"), example("t1", value=False), example("t2", value=None))
    assert version.examples.get(position=2).value is None


def test_more_than_four_are_refused(criterion: Criterion, train: ChatSet) -> None:
    five = [example(f"t{n}", value=n % 2 == 0) for n in range(5)]
    assert refused(criterion, *five) == "examples: are 5; a prompt has 4 at most"


def test_half_are_true_and_half_false_give_or_take_one(criterion: Criterion, train: ChatSet) -> None:
    values = [True, True, False, False]
    rows = [example(f"t{n}", value=value) for n, value in enumerate(values)]
    assert refused(criterion, rows[0], rows[1]) == (
        "examples: are 2 True and 0 False: half of each, or one more of one"
    )
    for count, examples in enumerate((rows[:1], rows[:3], rows), start=2):
        assert add(criterion, *examples).number == count


def test_what_is_advised_is_said_and_not_enforced() -> None:
    assert advice([True, False], topics=["a", "b"]) == ()
    assert "1 True and 0 False" in advice([True], topics=["a"])[0]
    assert "one is advised at most" in advice([True, False, None, None], topics=["a", "b"])[0]


# ---------- champions ----------


def test_a_promotion_past_the_gate_says_so_and_is_made_once(criterion: Criterion) -> None:
    version = add(criterion)
    promotion = prompt_promote(version=version, reason="Tried by hand")
    assert (promotion.overridden, promotion.reason) == (True, "Tried by hand")
    assert champions(criteria=[criterion])[criterion.pk] == version
    assert prompt_promote(version=version, reason="Again") == promotion
    assert Promotion.objects.filter(version=version).count() == 1


def test_a_promotion_needs_a_reason(criterion: Criterion) -> None:
    with pytest.raises(InputProblem, match="needs a reason"):
        prompt_promote(version=add(criterion), reason=" ")
