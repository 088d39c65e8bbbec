"""Draws are seeded and stable, without replacement, and the same in Python and in the database."""

import itertools
from collections import Counter
from collections.abc import Iterable

import pytest
from django.db.models import F, TextField, Value
from django.db.models.functions import MD5, Cast, Concat

from labeling.chats.core.allocation import AllocationRule
from labeling.models.chats import Chat
from labeling.sampling.core import (
    SampleAllocation,
    SampledChat,
    TopicStratum,
    allocate,
    key_prefix,
    sample_chats,
    sampling_key,
)
from tests.factories.rows import make_chat

FRAME = [(number, "refund" if number <= 30 else "delivery") for number in range(1, 41)]
SEEDS = 4000


def allocated(n: int, **sizes: int) -> SampleAllocation:
    frame = [TopicStratum(key, size) for key, size in sizes.items()]
    return allocate(frame, n, rule=AllocationRule.PROPORTIONAL)


EIGHT = allocated(8, refund=30, delivery=10)  # 6 and 2


def ids(drawn: Iterable[SampledChat]) -> list[int | str]:
    return [one.chat for one in drawn]


def test_a_key_is_the_md5_of_seed_purpose_and_id() -> None:
    """As `printf 7:judge:12 | md5sum` says."""
    assert sampling_key(12, prefix=key_prefix(7, "judge")) == "138767f43c87ef1b3dc4765d867d6bf6"


def test_each_topic_gives_its_number_of_chats_with_their_probability() -> None:
    drawn = sample_chats(FRAME, EIGHT, seed=1)
    assert Counter((one.topic, one.probability) for one in drawn) == {
        ("refund", 0.2): 6,
        ("delivery", 0.2): 2,
    }
    assert len(set(ids(drawn))) == 8


def test_the_same_seed_and_chats_give_the_same_sample_in_any_order() -> None:
    assert sample_chats(FRAME, EIGHT, seed=1) == sample_chats(reversed(FRAME), EIGHT, seed=1)
    assert sample_chats(FRAME, EIGHT, seed=1) != sample_chats(FRAME, EIGHT, seed=2)


def test_chats_of_another_topic_do_not_change_a_topics_draw() -> None:
    more = [*FRAME, *((number, "billing") for number in range(41, 61))]
    alone = {one.chat for one in sample_chats(FRAME, EIGHT, seed=1)}
    both = sample_chats(more, allocated(12, refund=30, delivery=10, billing=20), seed=1)
    assert alone == {one.chat for one in both if one.topic != "billing"}


def test_a_larger_sample_holds_the_smaller_one() -> None:
    assert set(ids(sample_chats(FRAME, EIGHT, seed=1))) < set(
        ids(sample_chats(FRAME, allocated(20, refund=30, delivery=10), seed=1))
    )


def test_each_chat_and_each_pair_is_drawn_as_often_as_its_probability_says() -> None:
    """2 of 5: each chat in 2/5 of the draws, each pair in 1/10, within 4 standard errors."""
    frame, two = [(number, "t") for number in range(5)], allocated(2, t=5)
    pairs = Counter(tuple(sorted(ids(sample_chats(frame, two, seed=seed)), key=str)) for seed in range(SEEDS))
    for pair in itertools.combinations(range(5), 2):
        assert abs(pairs[pair] / SEEDS - 0.1) < 4 * (0.1 * 0.9 / SEEDS) ** 0.5
    for chat in range(5):
        share = sum(count for pair, count in pairs.items() if chat in pair) / SEEDS
        assert abs(share - 0.4) < 4 * (0.4 * 0.6 / SEEDS) ** 0.5


def test_the_first_chats_of_a_stopped_run_are_a_random_part() -> None:
    """The first of two drawn from three: each in a third of the draws, within 4 standard errors."""
    frame, two = [(number, "t") for number in range(3)], allocated(2, t=3)
    first = Counter(sample_chats(frame, two, seed=seed)[0].chat for seed in range(SEEDS))
    assert all(abs(first[chat] / SEEDS - 1 / 3) < 4 * (2 / 9 / SEEDS) ** 0.5 for chat in range(3))


def test_a_frame_that_changed_since_its_allocation_is_refused() -> None:
    with pytest.raises(ValueError, match="topic refund has 31 chats, but the sample was allocated for 30"):
        sample_chats([*FRAME, (99, "refund")], EIGHT, seed=1)
    with pytest.raises(ValueError, match="topic new has 1 chats, but the sample was allocated for 0"):
        sample_chats([*FRAME, (99, "new")], EIGHT, seed=1)
    with pytest.raises(ValueError, match="topic delivery has 0 chats, but the sample was allocated for 10"):
        sample_chats(FRAME[:30], EIGHT, seed=1)


def test_a_chat_that_is_listed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="listed twice"):
        sample_chats([(1, "t"), (1, "t")], allocated(2, t=2), seed=1)


@pytest.mark.django_db
def test_the_database_orders_chats_by_the_same_keys() -> None:
    chats = [make_chat(f"Zürich-{number}").external_id for number in range(30)]
    prefix = key_prefix(7, "judge")
    text = Concat(Value(prefix), Cast(F("external_id"), TextField()), output_field=TextField())
    rows = Chat.objects.annotate(key=MD5(text)).order_by("key").values_list("external_id", "key")
    assert list(rows) == [
        (chat, sampling_key(chat, prefix=prefix))
        for chat in sorted(chats, key=lambda c: sampling_key(c, prefix=prefix))
    ]
    drawn = sample_chats([(chat, "t") for chat in chats], allocated(10, t=30), seed=7)
    assert ids(drawn) == [chat for chat, _ in rows[:10]]
