"""A night's sample is allocated to topics: by a rule, within bounds, and with the reasons for a shortfall."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeling.chats.core.allocation import AllocationRule
from labeling.sampling.core import SampleAllocation, Shortfall, TopicStratum, allocate, spread_over_criteria

PROPORTIONAL, NEYMAN = AllocationRule.PROPORTIONAL, AllocationRule.NEYMAN
topics = st.lists(st.tuples(st.integers(0, 400), st.sampled_from([0.0, 0.1, 0.3, 0.5])), max_size=9)


def strata(*sizes: int) -> list[TopicStratum]:
    return [TopicStratum(f"t{number}", size) for number, size in enumerate(sizes)]


def counts(found: SampleAllocation) -> list[int]:
    return [stratum.n for stratum in found.strata]


# ---------- the four rules, against published or exact values ----------


def test_neyman_gives_the_published_numbers() -> None:
    """Rice, Mathematical Statistics, chapter 7: 100 of two strata, n N S / sum N S."""
    two = [TopicStratum("a", 100_000, 20), TopicStratum("b", 500_000, 12)]
    assert counts(allocate(two, 100, rule=NEYMAN)) == [25, 75]


def test_proportional_gives_the_published_numbers() -> None:
    assert counts(allocate(strata(500, 1000, 1500), 84, rule=PROPORTIONAL)) == [14, 28, 42]


def test_square_root_allocation_follows_the_roots_of_the_sizes() -> None:
    assert counts(allocate(strata(100, 400, 900), 60, rule=AllocationRule.SQRT)) == [10, 20, 30]


def test_equal_allocation_gives_a_small_topic_all_it_has() -> None:
    assert counts(allocate(strata(5, 400, 900), 85, rule=AllocationRule.EQUAL)) == [5, 40, 40]


def test_the_largest_remainders_are_rounded_up() -> None:
    # 10 of 43, 32, 25: quotas 4.3, 3.2, 2.5
    assert counts(allocate(strata(43, 32, 25), 10, rule=PROPORTIONAL)) == [4, 3, 3]


def test_equal_remainders_go_to_the_first_keys() -> None:
    assert counts(allocate(strata(30, 30, 30), 4, rule=PROPORTIONAL)) == [2, 1, 1]


def test_neyman_comes_within_a_hundredth_of_the_least_variance_of_all_allocations() -> None:
    sizes, spreads, n = [60, 30, 12], [0.5, 0.2, 0.4], 24

    def variance(sample: tuple[int, ...]) -> float:
        return sum(N * N * (1 - k / N) * s * s / k for N, s, k in zip(sizes, spreads, sample, strict=True))

    every = (s for s in itertools.product(*(range(1, N + 1) for N in sizes)) if sum(s) == n)
    found = allocate(
        [TopicStratum(str(N), N, s) for N, s in zip(sizes, spreads, strict=True)], n, rule=NEYMAN
    )
    own = {stratum.size: stratum.n for stratum in found.strata}
    assert variance(tuple(own[N] for N in sizes)) <= 1.01 * min(map(variance, every))


# ---------- bounds ----------


@given(topics, st.integers(0, 900), st.integers(0, 15), st.integers(15, 60), st.sampled_from(AllocationRule))
def test_a_sample_never_exceeds_topics_caps_or_the_number_asked_for(
    kinds: list[tuple[int, float]], n: int, minimum: int, cap: int, rule: AllocationRule
) -> None:
    frame = [TopicStratum(f"t{number}", size, spread) for number, (size, spread) in enumerate(kinds)]
    found = allocate(frame, n, rule=rule, minimum=minimum, maximum=cap)
    assert found.n == min(n, sum(min(size, cap) for size, _ in kinds))
    for stratum in found.strata:
        assert min(stratum.size, found.minimum, cap) <= stratum.n <= min(stratum.size, cap)
    shuffled = random.Random(n).sample(frame, len(frame))
    assert allocate(shuffled, n, rule=rule, minimum=minimum, maximum=cap) == found


def test_at_least_ten_a_topic_or_all_of_a_smaller_one() -> None:
    found = allocate(strata(9000, 900, 60, 4), 200, rule=PROPORTIONAL, minimum=10)
    assert counts(found) == [169, 17, 10, 4]
    assert found.shortfalls == ()


def test_a_capped_topic_leaves_its_chats_to_the_others() -> None:
    assert counts(allocate(strata(9000, 900, 100), 100, rule=PROPORTIONAL, maximum=60)) == [60, 36, 4]


def test_a_topic_without_spread_is_filled_after_the_others() -> None:
    sure = TopicStratum("sure", 50, 0.0)
    assert counts(allocate([sure, TopicStratum("unsure", 30, 0.5)], 60, rule=NEYMAN)) == [30, 30]
    assert counts(allocate([sure, TopicStratum("sure too", 50, 0.0)], 40, rule=NEYMAN)) == [20, 20]


# ---------- shortfalls ----------


def test_a_quiet_night_gives_all_its_chats() -> None:
    found = allocate(strata(30, 12), 500, rule=PROPORTIONAL, minimum=10)
    assert (counts(found), found.shortfalls) == ([30, 12], (Shortfall.FEW_CHATS,))


def test_caps_may_leave_the_sample_smaller() -> None:
    found = allocate(strata(300, 12), 100, rule=PROPORTIONAL, maximum=50)
    assert (counts(found), found.shortfalls) == ([50, 12], (Shortfall.CAPPED,))


def test_a_minimum_that_does_not_fit_is_reduced_to_the_largest_that_does() -> None:
    found = allocate(strata(300, 200, 3, 100), 20, rule=PROPORTIONAL, minimum=10)
    assert (found.minimum, found.shortfalls) == (5, (Shortfall.MINIMUM_REDUCED,))
    assert counts(found) == [7, 5, 3, 5]


def test_topics_without_a_place_are_named() -> None:
    found = allocate(strata(300, 200, 3, 0), 2, rule=PROPORTIONAL)
    assert found.shortfalls == (Shortfall.MINIMUM_REDUCED, Shortfall.UNSAMPLED_TOPICS)
    assert found.unsampled == ("t2",)  # the empty topic needs none


def test_no_chats_give_no_sample() -> None:
    assert allocate([], 500, rule=NEYMAN).n == 0
    assert allocate(strata(0, 0), 500, rule=AllocationRule.EQUAL).n == 0


@pytest.mark.parametrize(
    ("frame", "n", "minimum", "maximum", "message"),
    [
        (strata(10), 5, 8, 7, "the minimum of 8 chats is above the maximum of 7"),
        (strata(10), -1, 0, None, "0 or more"),
        (strata(10) + strata(10), 5, 0, None, "a topic is listed twice"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(
    frame: list[TopicStratum], n: int, minimum: int, maximum: int | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        allocate(frame, n, rule=PROPORTIONAL, minimum=minimum, maximum=maximum)


# ---------- probabilities and spreads ----------


def test_probabilities_of_all_chats_add_up_to_the_sample() -> None:
    found = allocate(strata(9000, 900, 60, 4, 0), 200, rule=AllocationRule.SQRT, minimum=10)
    assert [stratum.probability for stratum in found.strata][-2:] == [1.0, 0.0]
    assert sum(one.probability * one.size for one in found.strata) == pytest.approx(200)


def test_the_spread_of_several_criteria_is_the_root_of_their_mean_variance() -> None:
    # (x + 1) / (n + 2) is 0.9 and 0.5: variances 0.09 and 0.25
    assert spread_over_criteria([(8, 8), (4, 8)]) == pytest.approx(0.17**0.5)
