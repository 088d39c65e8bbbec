"""Stratified samples and their inclusion probabilities."""

from collections import Counter

import pytest

from alignment.statistics.stratified_sampling import (
    Stratum,
    allocate_sample,
    excluded_duplicates,
    near_duplicate_groups,
    sample_chats,
    strata_of,
    stratum_codes,
)
from labeling.chats.core.allocation import AllocationError, AllocationRule
from labeling.chats.core.splits import Candidate

PROPORTIONAL = AllocationRule.PROPORTIONAL
STRATA = [
    Stratum(True, "refund", tuple(range(10))),
    Stratum(True, "delivery", tuple(range(10, 14))),
    Stratum(False, "refund", tuple(range(20, 50))),
    Stratum(False, "delivery", tuple(range(50, 60))),
]


def test_as_many_as_asked_for_come_from_either_kind() -> None:
    shares = allocate_sample(STRATA, chats=20, suspect=7, rule=PROPORTIONAL)
    assert [share.n for share in shares] == [5, 2, 10, 3]
    assert [share.probability for share in shares] == [0.5, 0.5, 1 / 3, 0.3]


def test_a_minimum_of_each_topic_is_kept_where_there_are_so_many() -> None:
    shares = allocate_sample(STRATA, chats=24, suspect=8, rule=PROPORTIONAL, minimum=4)
    assert [share.n for share in shares] == [4, 4, 12, 4]


@pytest.mark.parametrize(
    ("chats", "suspect", "minimum", "message"),
    [
        (20, 15, 0, "15 chats with a verdict of False requested, but there are only 14"),
        (50, 0, 0, "50 chats without a verdict of False requested, but there are only 40"),
        (9, 3, 3, "3 of each topic are 6 chats with a verdict of False, more than the 3 requested"),
    ],
)
def test_more_chats_than_there_are_cannot_be_sampled(
    chats: int, suspect: int, minimum: int, message: str
) -> None:
    with pytest.raises(AllocationError, match=message):
        allocate_sample(STRATA, chats=chats, suspect=suspect, rule=PROPORTIONAL, minimum=minimum)


def test_the_probabilities_of_all_chats_add_up_to_the_sample_size() -> None:
    shares = allocate_sample(STRATA, chats=20, suspect=7, rule=PROPORTIONAL)
    assert sum(share.probability * share.stratum.size for share in shares) == pytest.approx(20)
    assert len(sample_chats(shares, seed=1)) == 20


def test_over_many_seeds_each_chat_comes_as_often_as_its_probability_says() -> None:
    shares = allocate_sample(STRATA, chats=20, suspect=7, rule=PROPORTIONAL)
    seeds = 1500
    came = Counter(one.chat for seed in range(seeds) for one in sample_chats(shares, seed=seed))
    for share in shares:
        for chat in share.stratum.chats:
            # Five standard errors.
            off = 5 * (share.probability * (1 - share.probability) / seeds) ** 0.5
            assert came[chat] / seeds == pytest.approx(share.probability, abs=off)


def test_two_chats_of_a_stratum_come_together_as_often_as_chance_has_it() -> None:
    shares = allocate_sample([STRATA[0]], chats=5, suspect=5, rule=PROPORTIONAL)
    both = sum({0, 1} <= {one.chat for one in sample_chats(shares, seed=seed)} for seed in range(4000))
    assert both / 4000 == pytest.approx(5 / 10 * 4 / 9, abs=0.04)


def test_equal_seeds_sample_the_same_chats_and_others_do_not() -> None:
    shares = allocate_sample(STRATA, chats=20, suspect=7, rule=PROPORTIONAL)
    assert sample_chats(shares, seed=1) == sample_chats(shares, seed=1) != sample_chats(shares, seed=2)


def test_neither_place_nor_code_discloses_the_verdict() -> None:
    shares = allocate_sample(STRATA, chats=14, suspect=7, rule=PROPORTIONAL)
    first = Counter(sample_chats(shares, seed=seed)[0].chat < 20 for seed in range(2000))
    assert first[True] / 2000 == pytest.approx(0.5, abs=0.06)
    codes = Counter(stratum_codes(shares, seed=seed)[STRATA[0]] for seed in range(2000))
    assert set(codes) == {"s1", "s2", "s3", "s4"}
    assert max(codes.values()) / 2000 == pytest.approx(0.25, abs=0.06)


def test_strata_are_verdict_by_topic() -> None:
    assert strata_of([(1, "b"), (2, "a"), (3, "b"), (4, "b")], suspect={3, 2}) == [
        Stratum(True, "a", (2,)),
        Stratum(True, "b", (3,)),
        Stratum(False, "b", (1, 4)),
    ]


def test_of_near_duplicates_one_is_sampled_and_none_where_one_has_labels() -> None:
    chats = [
        Candidate("a", "x", 0),
        Candidate("b", "y", 7),  # near a
        Candidate("c", "z", 0xFFFFFF),
        Candidate("d", "z", 0xFFFFFF0000),  # the content of c
        Candidate("e", "w", None),
    ]
    assert near_duplicate_groups(chats) == [["a", "b"], ["c", "d"]]
    groups = [[1, 2], [3, 4]]
    assert excluded_duplicates(groups, taken={5}) == {2, 4}
    assert excluded_duplicates(groups, taken={4}) == {2, 3, 4}
