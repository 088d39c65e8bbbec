"""Splits by proportions."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.problems import InputProblem
from labeling.chats.core.splits import Candidate, proportions_of, related_chats, splits_of

SHARES = {"train": 0.2, "dev": 0.4, "holdout": 0.4}


def chats(number: int) -> list[Candidate]:
    return [Candidate(f"chat-{n}", f"hash-{n}", None) for n in range(number)]


def test_proportions_are_scaled_to_one() -> None:
    assert proportions_of("train=20,dev=40,holdout=40") == SHARES
    assert proportions_of(" dev=1 , holdout=3 ") == {"dev": 0.25, "holdout": 0.75}
    assert proportions_of("holdout") == {"holdout": 1.0}


@pytest.mark.parametrize(
    "text",
    [
        "test",
        "train=20,test=80",
        "dev=x",
        "dev=-1",
        "dev=nan",
        "dev=inf",
        "dev=0",
        "dev=1,dev=2",
        "",
    ],
)
def test_a_wrong_proportion_is_refused(text: str) -> None:
    with pytest.raises(InputProblem, match="--split"):
        proportions_of(text)


def test_splits_come_near_the_proportions() -> None:
    found = Counter(splits_of(chats(3000), SHARES).values())
    for split, share in SHARES.items():
        assert abs(found[split] / 3000 - share) < 0.04  # more than four standard errors


def test_a_split_depends_on_the_id_alone() -> None:
    everything = splits_of(chats(200), SHARES)
    assert splits_of(list(reversed(chats(200))), SHARES) == everything
    assert splits_of(chats(50), SHARES) == {f"chat-{n}": everything[f"chat-{n}"] for n in range(50)}


def test_near_duplicates_stay_together() -> None:
    pairs = [
        Candidate(
            f"{side}-{n}", f"{side}-{n}", (n * 0x9E3779B97F4A7C15) % 2**63 ^ (0b111 if side == "b" else 0)
        )
        for n in range(300)
        for side in "ab"
    ]
    found = splits_of(pairs, SHARES)
    assert all(found[f"a-{n}"] == found[f"b-{n}"] for n in range(300))
    assert len(set(found.values())) == 3


def test_chats_of_one_cluster_stay_together() -> None:
    chats = [Candidate(f"c{n}", f"content-{n}", None, cluster=f"customer-{n % 40}") for n in range(200)]
    splits = splits_of(chats, {"train": 0.2, "dev": 0.4, "holdout": 0.4})
    for customer in range(40):
        assert len({splits[f"c{n}"] for n in range(200) if n % 40 == customer}) == 1
    assert set(splits.values()) == {"train", "dev", "holdout"}


def test_the_same_content_stays_together_even_without_a_word() -> None:
    twins = [Candidate(f"chat-{n}", "same", None) for n in range(20)]
    assert len(set(splits_of(twins, SHARES).values())) == 1


def test_undecided_chats_follow_the_strictest_split_of_their_group() -> None:
    group = [
        Candidate("a", "x", 0, "train"),
        Candidate("b", "y", 1, "holdout"),
        Candidate("c", "z", 3),
        Candidate("d", "w", 0xFFFF << 40),
    ]
    assert splits_of(group, {"dev": 1.0}) == {"c": "holdout", "d": "dev"}


def test_a_share_of_zero_gets_nothing() -> None:
    assert set(splits_of(chats(500), proportions_of("train=0,dev=1")).values()) == {"dev"}


def naive_groups(hashes: list[int]) -> set[frozenset[int]]:
    groups = [{n} for n in range(len(hashes))]
    for left in range(len(hashes)):
        for right in range(left):
            if ((hashes[left] ^ hashes[right]) & (2**64 - 1)).bit_count() <= 3:
                a = next(group for group in groups if left in group)
                b = next(group for group in groups if right in group)
                if a is not b:
                    groups.remove(b)
                    a |= b
    return {frozenset(group) for group in groups}


BITS = st.integers(0, 63)
FAMILIES = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.lists(st.sets(BITS, max_size=6), max_size=4)), max_size=5
)


@given(FAMILIES)
def test_groups_are_those_that_comparing_every_pair_finds(families: list[tuple[int, list[set[int]]]]) -> None:
    hashes = []
    for base, changes in families:
        for flips in [set(), *changes]:
            value = base & (2**64 - 1)
            for bit in flips:
                value ^= 1 << bit
            hashes.append(value - 2**64 if value >= 2**63 else value)
    found = related_chats([Candidate(str(n), f"c{n}", value) for n, value in enumerate(hashes)])
    assert {frozenset(int(chat.external_id) for chat in group) for group in found} == naive_groups(hashes)
