"""The composed chats: as many as promised, no two alike, each with a truth that follows from its pieces."""

from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest

from alignment.demo_workspace.core.compose import ComposedChat, passes_when
from alignment.demo_workspace.queries import composed_chats
from labeling.chats.core.splits import has_near
from labeling.chats.core.transcript import near_hash

DAY = datetime(2026, 10, 1, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def chats() -> list[ComposedChat]:
    return composed_chats(first_day=DAY)


def words(chat: ComposedChat) -> str:
    return "\n".join(message["content"] for message in chat.messages)


def test_no_two_of_400_chats_have_the_same_text(chats: list[ComposedChat]) -> None:
    assert len(chats) == 400
    assert len({words(chat) for chat in chats}) == 400


def test_near_duplicates_are_few(chats: list[ComposedChat]) -> None:
    hashes = [near_hash([message["content"] for message in chat.messages]) for chat in chats]
    known = [one for one in hashes if one is not None]
    alike = [n for n, one in enumerate(known) if has_near(one, np.array(known[:n], dtype=np.int64))]
    assert len(alike) <= 4


def test_the_same_seed_gives_the_same_texts_on_another_day(chats: list[ComposedChat]) -> None:
    later = composed_chats(first_day=datetime(2027, 3, 1, tzinfo=UTC), count=60)
    assert [words(chat) for chat in later] == [words(chat) for chat in chats[:60]]
    assert [chat.truth for chat in later] == [chat.truth for chat in chats[:60]]


def test_topics_lengths_tools_and_languages_vary(chats: list[ComposedChat]) -> None:
    topics = Counter(chat.topic for chat in chats)
    assert len(topics) == 15  # small talk among them
    assert max(topics.values()) < 45
    lengths = [len(chat.messages) for chat in chats]
    assert min(lengths) <= 3 < 12 <= max(lengths)
    assert 100 < sum(any(m["role"] == "tool" for m in chat.messages) for chat in chats) < 350
    foreign = ("E-Mail", "Claro", "Certo", "Natuurlijk", "はい", "Oczywiście", "Bien sûr")
    assert sum(any(word in words(chat) for word in foreign) for chat in chats) >= 15


def test_slots_and_templates_are_filled_except_where_a_slip_is_meant(chats: list[ComposedChat]) -> None:
    for chat in chats:
        if "{" in words(chat):
            assert chat.truth["polite_professional"] is False, chat.id


def test_every_criterion_has_faults_and_each_fault_names_a_message_of_the_bot(
    chats: list[ComposedChat],
) -> None:
    faults: Counter[str] = Counter()
    for chat in chats:
        for key, value in chat.truth.items():
            if value is not None and value != passes_when(key):
                faults[key] += 1
                spoken = chat.messages[chat.evidence[key] - 1]["role"]
                assert spoken == ("user" if key == "customer_left_dissatisfied" else "assistant"), chat.id
    assert set(faults) == set(chats[0].truth)
    assert all(count >= 40 for key, count in faults.items() if key != "exposed_sensitive_data")


@pytest.mark.parametrize(
    ("piece", "criterion", "value"),
    [
        ("Delays of less than two hours are not compensated", "stated_wrong_fact", True),
        ("claim the delivery fee from them directly", "contextual_relevancy", False),
        ("We appreciate your patience", "actionable_answer", False),
        ("What is your order number, please?", "reasked_known_information", True),
        ("Shall I check your order?", "caused_needless_turns", True),
        ("Calm down, please.", "polite_professional", False),
        ("send me your full card number", "exposed_sensitive_data", True),
        ("nobody has read your message yet", "self_consistent", False),
    ],
)
def test_a_piece_decides_its_criterion(
    chats: list[ComposedChat], piece: str, criterion: str, value: bool
) -> None:
    holding = [chat for chat in chats if piece.lower() in words(chat).lower()]
    assert holding
    assert {chat.truth[criterion] for chat in holding} == {value}


def test_the_truth_is_no_part_of_what_is_imported(chats: list[ComposedChat]) -> None:
    line = chats[0].as_line()
    assert set(line) == {"id", "topic", "split", "started_at", "messages", "metadata"}
    assert set(line["metadata"]) == {"title", "demo"}
