"""Words of a prompt that come from chats judges are measured on are found; no chat is named."""

import tracemalloc

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluation.prompts.core.leaks import leaked_passages, merge_shingles, shingles_of, shorten
from evaluation.prompts.queries.criteria import prompt_findings
from evaluation.prompts.queries.leaks import leaks
from evaluation.prompts.services.examples import ExampleChoice
from evaluation.prompts.services.lint import prompt_lint
from labeling.models.chats import Chat, ChatSetMember
from labeling.models.rubric import Criterion, Rubric
from tests.factories.rows import make_chat, make_rubric, make_set

SAID = "Honestly, my parcel never came and nobody at your shop told me why!"
TEXT = "# Objective\nIs polite so?\n\nLike “my PARCEL never came and nobody at your shop” in that one.\n"


def test_a_passage_is_quoted_as_the_author_wrote_it_and_no_further() -> None:
    assert leaked_passages(TEXT, known=shingles_of([SAID])) == (
        "my PARCEL never came and nobody at your shop",
    )


def test_seven_words_in_common_are_chance() -> None:
    assert leaked_passages("my parcel never came and nobody at home", known=shingles_of([SAID])) == ()


def test_no_passage_goes_from_one_message_into_the_next() -> None:
    known = shingles_of(["my parcel never came", "and nobody at your shop told me why"])
    assert leaked_passages(TEXT, known=known) == ()


def test_two_places_are_two_passages() -> None:
    known = shingles_of([SAID, "Give me back all of my money before the end of today"])
    text = f"{SAID} That is one. Give me back all of my money before the end."
    assert leaked_passages(text, known=known) == (
        SAID.rstrip("!"),
        "Give me back all of my money before the end",
    )


def test_a_run_of_words_that_many_messages_hold_is_kept_once() -> None:
    assert len(shingles_of([SAID, SAID])) == len(shingles_of([SAID]))


def test_what_is_read_of_many_chats_is_held_once_in_memory() -> None:
    parts = (np.arange(n, 2_000_000, 40, dtype=np.uint64) for n in range(40))
    tracemalloc.start()
    found = merge_shingles(parts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(found, np.arange(2_000_000, dtype=np.uint64))
    assert peak < 1.5 * found.nbytes


def test_a_long_passage_is_shown_by_its_ends() -> None:
    assert shorten("so " * 100) == f"{'so ' * 19}so … {'so ' * 19}so"


# ---------- in the workspace ----------


@pytest.fixture
def rubric(db: None) -> Rubric:
    return make_rubric("polite")


@pytest.fixture
def criterion(rubric: Rubric) -> Criterion:
    return rubric.criteria.get()


def found() -> list[str]:
    return [passage for _, passage in leaks({"objective": TEXT})]


def held(rubric: Rubric, split: str, said: str = SAID) -> Chat:
    chat = make_chat(f"secret-{split}", messages=[("user", said), ("assistant", "Sorry.")])
    make_set(rubric, chat, name=f"set of {split}", split=split)
    return chat


@pytest.mark.parametrize("split", ["dev", "holdout"])
def test_words_of_a_measured_chat_are_a_warning_that_names_no_chat(
    rubric: Rubric, criterion: Criterion, split: str
) -> None:
    held(rubric, split)
    (finding,) = [one for one in prompt_findings(criterion=criterion, text=TEXT) if "occurs" in one.message]
    assert finding.line == (
        "warning: # Objective: “my PARCEL never came and nobody at your shop” "
        "occurs word for word in a dev or holdout chat"
    )


def test_words_of_training_chats_may_be_used(rubric: Rubric, criterion: Criterion) -> None:
    held(rubric, "train")
    assert found() == []


def test_a_chat_that_leaves_or_joins_the_measured_ones_counts_at_once(
    rubric: Rubric, criterion: Criterion
) -> None:
    chat = held(rubric, "dev")
    assert len(found()) == 1
    ChatSetMember.objects.filter(chat=chat).update(split="train")
    assert found() == []
    ChatSetMember.objects.filter(chat=chat).update(split="holdout")
    assert len(found()) == 1


def test_chats_that_were_read_are_not_read_again(rubric: Rubric) -> None:
    held(rubric, "dev")
    found()
    with CaptureQueriesContext(connection) as queries:
        assert len(found()) == 1
    assert len(queries) == 1
    assert "messages" not in queries[0]["sql"]


def test_what_an_example_says_is_looked_through_as_well(rubric: Rubric, criterion: Criterion) -> None:
    held(rubric, "holdout")
    chat = make_chat("t0")
    make_set(rubric, chat, name="training", split="train")
    found = prompt_lint(
        criterion=criterion,
        text="# Objective\nIs polite so?",
        examples=[ExampleChoice(chat, 1, 2, True, SAID)],
    )
    assert [one.section for one in found if "occurs word for word" in one.message] == ["examples"]
