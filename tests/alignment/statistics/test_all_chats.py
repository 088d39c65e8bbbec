"""Share of True in all chats: stratified, prediction-powered, and by week."""

import numpy as np
import pytest

from alignment.statistics.cusum import lower_cusum
from alignment.statistics.prediction_powered import FEW_FALSE_FLAG, ppi_share
from alignment.statistics.stratified import Stratum, stratified_share


def test_a_stratum_without_an_answer_leaves_the_share_undefined() -> None:
    assert stratified_share([Stratum(100, 10, 0.5), Stratum(5, 0, 0.0)]).value is None
    assert stratified_share([]).value is None


def test_an_empty_stratum_is_left_out() -> None:
    assert stratified_share([Stratum(100, 10, 0.5), Stratum(0, 0, 0.0)]).value == 0.5


def test_a_single_answer_of_several_chats_has_no_interval() -> None:
    found = stratified_share([Stratum(100, 10, 0.5), Stratum(100, 1, 1.0)])
    assert (found.value, found.interval) == (0.75, None)


def test_where_every_chat_is_answered_nothing_is_uncertain() -> None:
    found = stratified_share([Stratum(10, 10, 0.3), Stratum(1, 1, 1.0)])
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (found.value, found.value)


def covered(*, share: float, tpr: float, tnr: float, labels: int, chats: int, seed: int) -> bool:
    """One simulated set: does the interval hold the planted share?"""
    rng = np.random.default_rng(seed)
    truth = rng.random(labels + chats) < share
    verdicts = np.where(truth, rng.random(truth.size) < tpr, rng.random(truth.size) > tnr).astype(float)
    found = ppi_share(truth[:labels].astype(float), verdicts[:labels], verdicts[labels:])
    assert found.interval is not None
    return found.interval.low <= share <= found.interval.high


@pytest.mark.parametrize(("share", "tpr", "tnr"), [(0.85, 0.95, 0.80), (0.70, 0.90, 0.90)])
def test_random_labels_and_verdicts_cover_the_planted_share(share: float, tpr: float, tnr: float) -> None:
    kept = [covered(share=share, tpr=tpr, tnr=tnr, labels=200, chats=2000, seed=seed) for seed in range(1500)]
    assert 0.93 <= np.mean(kept) <= 0.97


def test_verdicts_that_say_nothing_leave_the_labels_alone() -> None:
    labels = np.array([1.0, 0.0, 1.0, 1.0])
    found = ppi_share(labels, np.ones(4), np.ones(50))
    assert found.value == pytest.approx(0.75)
    assert found.flag == FEW_FALSE_FLAG


def test_without_labels_there_is_no_share() -> None:
    assert ppi_share(np.array([]), np.array([]), np.ones(5)).value is None


def test_a_week_with_too_few_chats_is_skipped_without_a_restart() -> None:
    found = lower_cusum([-3.0, None, -3.0], target=0.0)
    assert (found.sums, found.alarm) == ((2.5, 2.5, 5.0), 2)


def test_weeks_at_the_target_never_add_up() -> None:
    assert lower_cusum([0.0] * 50, target=0.0).alarm is None
