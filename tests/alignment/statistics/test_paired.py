"""Paired statistics against SciPy, statsmodels and their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, false_discovery_control, norm
from statsmodels.stats.multitest import multipletests

from alignment.statistics.paired_tests import (
    PairedTable,
    benjamini_yekutieli,
    holm,
    mcnemar_midp,
    tango_interval,
    tango_z,
)

counts = st.integers(0, 60)


@given(st.integers(0, 80), st.integers(1, 80))
def test_the_midp_value_is_the_exact_one_less_half_of_what_was_seen(worse: int, better: int) -> None:
    n = worse + better
    exact = binomtest(worse, n, alternative="greater").pvalue
    exactly = binomtest(worse, n, alternative="greater").pvalue - (
        binomtest(worse + 1, n, alternative="greater").pvalue if worse < n else 0
    )
    assert mcnemar_midp(worse, better) == pytest.approx(exact - exactly / 2)


def test_the_interval_of_two_equal_judges_has_a_width() -> None:
    found = tango_interval(PairedTable(both=10, first=0, second=0, neither=5))
    z = norm.ppf(0.975)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((-(z**2) / (15 + z**2), z**2 / (15 + z**2)))


def test_no_chat_has_no_interval() -> None:
    empty = PairedTable(0, 0, 0, 0)
    assert (empty.difference, tango_interval(empty)) == (None, None)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="negative count"):
        PairedTable(1, -1, 0, 0)


@given(counts, counts, counts, counts)
def test_the_interval_holds_the_difference_and_turns_with_the_judges(a: int, b: int, c: int, d: int) -> None:
    one, other = PairedTable(a, b, c, d), PairedTable(a, c, b, d)
    found, turned = tango_interval(one), tango_interval(other)
    if found is None or turned is None or one.difference is None:
        assert one.n == 0
        return
    assert found.low <= one.difference <= found.high
    assert (found.low, found.high) == pytest.approx((-turned.high, -turned.low), abs=1e-8)


def test_expected_counts_may_be_fractions() -> None:
    whole, shares = tango_z([4, 8], [2, 4], [100, 200], at=-0.05), tango_z(4.0, 2.0, 100.0, at=-0.05)
    assert whole[0] == pytest.approx(float(shares))
    assert np.all(np.diff(whole) > 0)


@pytest.mark.heavy
@settings(max_examples=10)  # statsmodels takes a tenth of a second
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_equals_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


def test_a_family_of_no_tests_is_empty() -> None:
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_benjamini_yekutieli_equals_scipy(p_values: list[float]) -> None:
    assert benjamini_yekutieli(p_values) == pytest.approx(
        false_discovery_control(p_values, method="by").tolist()
    )
