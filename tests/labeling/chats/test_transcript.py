"""Chats of a file: the contract's limits, and the two hashes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.jsonl import Fields, Ignored
from common.problems import FieldProblem
from labeling.chats.core.transcript import Transcript, content_hash, near_hash, transcript_of
from tests.files import chat


def parsed(**fields: Any) -> Transcript:
    return transcript_of(Fields(chat() | fields))


def refusal(**fields: Any) -> str:
    with pytest.raises(FieldProblem) as caught:
        parsed(**fields)
    return str(caught.value)


def distance(left: int | None, right: int | None) -> int:
    assert left is not None
    assert right is not None
    return ((left ^ right) & (2**64 - 1)).bit_count()


def test_messages_are_numbered_counted_and_kept_as_they_are() -> None:
    found = parsed(messages=[{"role": "assistant", "content": "  Hi "}, {"role": "tool", "content": ""}])
    assert found.messages == [
        {"n": 1, "role": "assistant", "content": "  Hi "},
        {"n": 2, "role": "tool", "content": ""},
    ]
    assert (found.message_count, found.char_count) == (2, 5)


def test_message_times_are_kept_in_utc() -> None:
    message = {"role": "user", "content": "Hi", "created_at": "2026-11-01T10:00:00+01:00"}
    assert parsed(messages=[message]).messages[0]["created_at"] == "2026-11-01T09:00:00Z"


def test_what_a_line_does_not_say_is_none() -> None:
    found = parsed(topic=None)
    assert (found.topic, found.split, found.started_at, found.metadata, found.variant) == (None,) * 5


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"id": 7}, "id: must be text, not 7"),
        ({"id": " "}, "id: must not be blank"),
        ({"id": "x" * 201}, "id: is longer than 200"),
        ({"messages": []}, "messages: must contain at least one"),
        ({"messages": "Hi"}, "messages: must be a list"),
        ({"messages": ["Hi"]}, "messages[0]: must be an object"),
        ({"messages": [{"role": "bot", "content": "Hi"}]}, "messages[0].role: must be one of user"),
        ({"messages": [{"content": "Hi"}]}, "messages[0].role: is missing"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content: must be text, not None"),
        (
            {"messages": [{"role": "user", "content": "x", "created_at": "?"}]},
            "messages[0].created_at: must be an",
        ),
        ({"split": "test"}, "split: must be one of train, dev, holdout"),
        ({"started_at": "soon"}, "started_at: must be an ISO 8601 time"),
        ({"metadata": []}, "metadata: must be an object"),
        ({"topic": "x" * 201}, "topic: is longer than 200"),
        ({"experiment": "x" * 81}, "experiment: is longer than 80"),
        ({"experiment": "a//b"}, "experiment: 'a//b' must not have empty parts"),
        ({"experiment": "a/"}, "experiment: 'a/' must not have empty parts"),
        ({"experiment": ".."}, "experiment: '..' must not have empty parts, . or .."),
        ({"variant": 3}, "variant: must be text"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], words: str) -> None:
    assert refusal(**fields).startswith(words)


def test_a_chat_may_hold_a_million_characters_and_5000_messages_but_no_more() -> None:
    assert parsed(messages=[{"role": "user", "content": "x" * 1_000_000}]).char_count == 1_000_000
    long = [{"role": "user", "content": "x" * 500_001}, {"role": "user", "content": "x" * 500_000}]
    assert "1,000,001 characters" in refusal(messages=long)
    many = [{"role": "user", "content": "x"}] * 5000
    assert parsed(messages=many).message_count == 5000
    assert "5,001 messages" in refusal(messages=[*many, many[0]])


def test_unknown_fields_are_counted_once_a_line() -> None:
    ignored = Ignored()
    message = {"role": "user", "content": "Hi", "name": "x"}
    transcript_of(Fields(chat() | {"messages": [message, message], "lang": "en"}), ignored)
    assert dict(ignored.counts) == {"lang": 1, "messages[].name": 1}


def test_content_is_roles_and_texts_in_order_and_nothing_else() -> None:
    first = parsed(topic="a", metadata={"x": 1})
    assert first.content_hash == parsed(id="other", topic="b").content_hash
    swapped = [dict(message) for message in reversed(first.messages)]
    assert first.content_hash != parsed(messages=swapped).content_hash
    assert content_hash([("user", "ab"), ("user", "c")]) != content_hash([("user", "a"), ("user", "bc")])


TEXT = (
    "my parcel was due on monday and it has not come yet the courier says that nobody was in but I waited "
    "all day please find out where it is now and send it again to the office in the harbour street instead "
    "thanks the bottle in the last order was broken too and nobody answered my mail about the refund "
)


def test_one_changed_word_moves_few_bits_another_text_many() -> None:
    text = TEXT * 3
    changed = text.replace("monday", "tuesday", 1)
    assert distance(near_hash([text]), near_hash([changed])) <= 3
    assert distance(near_hash([text]), near_hash([" ".join(reversed(TEXT.split()))])) > 10


def test_case_and_punctuation_do_not_count() -> None:
    assert near_hash(["Where is my order?"]) == near_hash(["WHERE, is… my", "order!"])


@pytest.mark.parametrize("texts", [[], [""], ["…", "?!"]])
def test_without_a_word_there_is_no_near_hash(texts: list[str]) -> None:
    assert near_hash(texts) is None


def test_near_hash_is_the_same_on_every_machine() -> None:
    assert near_hash(["where is my order"]) == -7492562476143550400


@given(st.lists(st.text(max_size=40), max_size=5))
def test_near_hash_fits_a_signed_bigint(texts: list[str]) -> None:
    found = near_hash(texts)
    assert found is None or -(2**63) <= found < 2**63
