"""Calibration of probabilities against the consensus."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from alignment.statistics.calibration import (
    FEW_VERDICTS,
    calibration,
    expected_calibration_error,
    reliability_bins,
)

STATED = np.array([0.05, 0.15, 0.55, 0.65, 0.75, 0.85, 0.85, 0.95, 0.95, 1.0])
ANSWERED = np.array([0, 0, 1, 1, 1, 0, 1, 1, 1, 1]) == 1


def test_a_probability_of_one_belongs_to_the_last_bin() -> None:
    last = reliability_bins(ANSWERED, STATED)[-1]
    assert (last.low, last.n) == (0.9, 3)


def test_below_a_hundred_verdicts_there_is_a_brier_score_and_no_diagram() -> None:
    found = calibration(ANSWERED, STATED)
    assert (found.bins, found.ece, found.reason) == ((), None, FEW_VERDICTS)
    enough = calibration(np.tile(ANSWERED, 10), np.tile(STATED, 10))
    assert enough.ece == expected_calibration_error(enough.bins)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=50))
def test_the_brier_score_equals_scikit_learns(rows: list[tuple[bool, float]]) -> None:
    answered, stated = np.array([one[0] for one in rows]), np.array([one[1] for one in rows])
    theirs = brier_score_loss(answered, stated, labels=[False, True], pos_label=True)
    assert calibration(answered, stated).brier == pytest.approx(theirs, abs=1e-12)


def test_one_class_has_a_brier_score() -> None:
    assert calibration(np.array([True, True]), np.array([1.0, 0.0])).brier == 0.5


def test_nothing_is_undefined() -> None:
    found = calibration(np.array([], dtype=bool), np.array([]))
    assert (found.n, found.brier, found.bins, found.ece) == (0, None, (), None)
    assert expected_calibration_error(()) is None


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=300))
def test_every_verdict_is_in_one_bin_that_holds_its_probability(rows: list[tuple[bool, float]]) -> None:
    answered, stated = np.array([one[0] for one in rows]), np.array([one[1] for one in rows])
    bins = reliability_bins(answered, stated)
    assert sum(one.n for one in bins) == len(rows)
    assert all(one.low - 1e-9 <= one.stated <= one.high + 1e-9 for one in bins)
    error = expected_calibration_error(bins)
    assert error is not None
    assert 0 <= error <= 1
