"""A sample is shared out over strata: whole, within bounds, and adding up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeling.chats.core.allocation import AllocationError, AllocationRule, allocation, expected_spread

strata = st.lists(st.integers(0, 500), min_size=1, max_size=12)


@given(strata, st.floats(0, 1), st.integers(0, 20), st.sampled_from(AllocationRule))
def test_every_sample_adds_up_within_its_bounds(
    sizes: list[int], part: float, minimum: int, rule: AllocationRule
) -> None:
    least = sum(min(size, minimum) for size in sizes)
    n = least + round(part * (sum(sizes) - least))
    found = allocation(sizes, n, rule=rule, spreads=[0.5] * len(sizes), minimum=minimum)
    assert sum(found) == n
    for size, drawn in zip(sizes, found, strict=True):
        assert min(size, minimum) <= drawn <= size


def test_equal_allocation_gives_the_same_to_each_and_what_is_left_to_the_larger() -> None:
    assert allocation([100, 900, 10], 110, rule=AllocationRule.EQUAL) == [50, 50, 10]


def test_neyman_gives_more_where_answers_differ_more() -> None:
    spreads = [expected_spread(99, 100), expected_spread(50, 100)]
    low, high = allocation([500, 500], 100, rule=AllocationRule.NEYMAN, spreads=spreads)
    assert low < 30 < 70 < high


def test_neyman_without_any_spread_needs_no_more_than_the_minimum() -> None:
    assert allocation([50, 50], 20, rule=AllocationRule.NEYMAN, spreads=[0.0, 0.0], minimum=10) == [10, 10]


def test_neyman_without_any_spread_cannot_give_more_than_the_minimum() -> None:
    with pytest.raises(AllocationError, match="strata without spread"):
        allocation([50, 50], 30, rule=AllocationRule.NEYMAN, spreads=[0.0, 0.0], minimum=10)


def test_a_maximum_caps_each_stratum() -> None:
    assert allocation([100, 900, 10], 110, rule=AllocationRule.PROPORTIONAL, maximum=60) == [45, 60, 5]


@pytest.mark.parametrize(("n", "minimum"), [(31, 0), (5, 3)])
def test_an_impossible_sample_is_refused(n: int, minimum: int) -> None:
    with pytest.raises(AllocationError, match=f"{n} chats cannot be sampled from 30"):
        allocation([10, 20], n, rule=AllocationRule.PROPORTIONAL, minimum=minimum)


def test_an_unseen_stratum_is_expected_to_be_mixed() -> None:
    assert expected_spread(0, 0) == 0.5
