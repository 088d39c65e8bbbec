"""The corrected share of True: edge cases, and coverage of simulated shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment.statistics.agreement import Confusion
from alignment.statistics.intervals import wilson
from alignment.statistics.prevalence_correction import (
    CLIPPED,
    NO_BETTER,
    TOO_WIDE,
    corrected_share,
    lang_reiczigel,
    rogan_gladen,
)

confusions = st.builds(Confusion, *[st.integers(0, 60)] * 4)


def test_a_judge_no_better_than_chance_has_no_corrected_share() -> None:
    assert rogan_gladen(apparent=0.5, tpr=0.3, tnr=0.5) is None
    found = corrected_share(table=Confusion(20, 20, 20, 20), judge_true=90, judge_n=180)
    assert (found.value, found.interval, found.reason) == (None, None, NO_BETTER)


def test_a_share_below_zero_is_clipped_and_says_so() -> None:
    share = rogan_gladen(apparent=0.03, tpr=0.9, tnr=0.95)
    assert share is not None
    assert share.clipped
    found = corrected_share(table=Confusion(90, 10, 1, 99), judge_true=91, judge_n=100_200)
    assert (found.value, found.flag) == (100 / 100_200, CLIPPED)  # the others' share is clipped to 0
    assert found.interval is not None and found.value is not None
    assert found.interval.low < found.value


def test_lang_reiczigel_gives_no_interval_for_a_judge_no_better_than_chance() -> None:
    assert lang_reiczigel(apparent=0.3, n=100, tpr=0.4, n_true=50, tnr=0.5, n_false=60) is None


def test_lang_reiczigel_covers_the_planted_share() -> None:
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(1000):
        tp, tn = int(rng.binomial(85, 0.95)), int(rng.binomial(15, 0.80))
        true = int(rng.binomial(1000, 0.85 * 0.95 + 0.15 * 0.20))
        found = lang_reiczigel(apparent=true / 1000, n=1000, tpr=tp / 85, n_true=85, tnr=tn / 15, n_false=15)
        assert found is not None
        held += found.low <= 0.85 <= found.high
    assert 0.93 <= held / 1000 <= 0.985


def test_an_interval_wider_than_half_is_not_usable_and_shows_no_value() -> None:
    found = corrected_share(table=Confusion(6, 4, 3, 5), judge_true=59, judge_n=118)
    assert (found.value, found.interval, found.reason) == (None, None, TOO_WIDE)


def test_a_coin_as_judge_shows_no_corrected_share() -> None:
    # By luck a little above chance; the formula alone gives 0.20 for a share of 0.50.
    found = corrected_share(table=Confusion(16, 14, 15, 15), judge_true=31 + 36, judge_n=150)
    assert (found.value, found.reason) == (None, TOO_WIDE)
    shrunk = corrected_share(table=Confusion(1, 0, 9, 1), judge_true=50, judge_n=110)
    assert (shrunk.value, shrunk.reason) == (None, NO_BETTER)


@pytest.mark.parametrize("table", [Confusion(5, 1, 0, 0), Confusion(0, 0, 1, 5), Confusion(0, 0, 0, 0)])
def test_correction_needs_both_human_classes(table: Confusion) -> None:
    found = corrected_share(table=table, judge_true=table.judge_true + 5, judge_n=table.n + 10)
    assert found.value is None
    assert "True" in found.reason
    assert "False" in found.reason


def test_correction_needs_verdicts() -> None:
    found = corrected_share(table=Confusion(0, 0, 0, 0), judge_true=0, judge_n=0)
    assert (found.value, found.reason) == (None, "no verdict of True or False")


@given(confusions, st.integers(0, 300), st.integers(0, 300))
def test_a_share_is_never_below_what_is_known_true_nor_above_what_is_not_known_false(
    table: Confusion, true: int, false: int
) -> None:
    n = table.n + true + false
    found = corrected_share(table=table, judge_true=table.judge_true + true, judge_n=n)
    if found.value is not None:
        assert table.human_true / n <= found.value + 1e-12
        assert found.value <= 1 - table.human_false / n + 1e-12


@given(confusions, st.integers(0, 300), st.integers(0, 300))
def test_corrected_share_stays_in_range_within_its_interval(table: Confusion, true: int, false: int) -> None:
    judge_true = table.judge_true + true
    found = corrected_share(table=table, judge_true=judge_true, judge_n=table.n + true + false)
    if found.value is None or found.interval is None:
        assert found.reason
    else:
        assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1
        assert found.interval.high - found.interval.low <= 1


@given(confusions)
def test_over_the_labelled_chats_alone_it_is_the_human_share(table: Confusion) -> None:
    found = corrected_share(table=table, judge_true=table.judge_true, judge_n=table.n)
    if found.value is not None:
        assert found.value == pytest.approx(table.human_true / table.n)
        plain = wilson(table.human_true, table.n)
        if found.interval and plain:
            assert (found.interval.low, found.interval.high) == pytest.approx((plain.low, plain.high))
