"""The alternative annotator test and the balanced gap."""

import numpy as np
import pytest
from numpy.typing import NDArray

from alignment.statistics import alt_test as module
from alignment.statistics.alt_test import FEW_RATERS, MANY_CHATS, AltTest, alt_test

Codes = NDArray[np.int64]

# Three raters at 95% True; the rows are the chats on which not all three say True.
DIFFERENT = {
    0: (0, 0, 0), 3: (0, 1, 1), 10: (1, 0, 1), 17: (1, 1, 0), 20: (0, 0, 0), 40: (0, 0, 0),
    50: (0, 1, 1), 55: (1, 0, 1), 60: (0, 0, 1), 71: (0, 1, 1), 74: (1, 0, 1), 77: (1, 1, 0),
    80: (0, 0, 0),
}  # fmt: skip


def planted(*, share_true: float, chats: int, judge: str, seed: int, rater_accuracy: float = 0.92) -> AltTest:
    """Three raters who are right 92% of the time, and a judge of a known kind."""
    rng = np.random.default_rng(seed)
    truth = rng.random(chats) < share_true

    def answers(accuracy: float) -> Codes:
        return np.where(rng.random(chats) < accuracy, truth, ~truth).astype(np.int64)

    people = np.column_stack([answers(rater_accuracy) for _ in range(3)])
    says = {
        "constant": lambda: np.ones(chats, dtype=np.int64),
        "same": lambda: answers(0.92),
        "better": lambda: answers(0.96),
    }[judge]()
    return alt_test(people, says, seed=seed, resamples=300)


def shares(**kind: object) -> tuple[float, float]:
    """How often the alt-test and the balanced gap let the judge pass, in 150 simulated sets."""
    found = [planted(seed=seed, **kind) for seed in range(150)]  # type: ignore[arg-type]
    return float(np.mean([one.alt_test for one in found])), float(np.mean([one.balanced for one in found]))


def test_a_judge_that_always_says_true_passes_the_alt_test_and_fails_the_balanced_gap() -> None:
    # Own case at 95% True and epsilon 0.1, checked by hand: winning rate 1, advantage 0.96.
    people = np.ones((100, 3), dtype=np.int64)
    for chat, row in DIFFERENT.items():
        people[chat] = row
    found = alt_test(people, np.ones(100, dtype=np.int64), seed=1, epsilon=0.1)
    assert (found.winning_rate, found.alt_test, found.balanced) == (1.0, True, False)
    assert found.advantage == pytest.approx(0.96, abs=1e-9)


@pytest.mark.parametrize(
    ("share_true", "chats", "judge", "alt_test", "balanced"),
    [
        # Shares of 200 simulations by an independent program, epsilon 0.15.
        (0.95, 100, "constant", 1.00, 0.03),
        (0.85, 100, "constant", 0.50, 0.00),
        (0.85, 300, "constant", 0.96, 0.00),
        (0.50, 100, "constant", 0.00, 0.00),
        (0.85, 300, "same", 1.00, 0.99),
        (0.50, 100, "same", 0.97, 0.88),
        (0.85, 100, "better", 1.00, 0.96),
    ],
)
def test_planted_judges_pass_as_often_as_they_should(
    share_true: float, chats: int, judge: str, alt_test: float, balanced: float
) -> None:
    found = shares(share_true=share_true, chats=chats, judge=judge)
    # Three standard errors of the difference of two simulated shares of about 150 and 200.
    assert found == pytest.approx((alt_test, balanced), abs=0.16)


def test_a_judge_equal_to_the_truth_wins_against_everyone() -> None:
    people = np.tile([[1, 1, 1], [0, 0, 0]], (60, 1))
    found = alt_test(people, people[:, 0], seed=1)
    assert (found.winning_rate, found.advantage, found.balanced) == (1.0, 1.0, True)
    assert [case.gap.value for case in found.cases] == [0.0, 0.0, 0.0]


def test_a_judge_that_is_always_wrong_wins_against_nobody() -> None:
    people = np.tile([[1, 1, 1], [0, 0, 0]], (60, 1))
    found = alt_test(people, 1 - people[:, 0], seed=1)
    assert (found.winning_rate, found.advantage, found.balanced) == (0.0, 0.0, False)


def test_only_chats_with_the_judge_the_rater_and_another_rater_count() -> None:
    people = np.tile([[1, 1, 1], [0, 0, 0]], (40, 1))
    judge = people[:, 0].copy()
    judge[:10] = -1
    people[10:20, 1:] = -1
    assert [case.chats for case in alt_test(people, judge, seed=1).cases] == [60, 60, 60]


@pytest.mark.parametrize("kept", [[0, 1], []])
def test_fewer_than_three_raters_with_thirty_chats_make_no_case(kept: list[int]) -> None:
    people = np.full((80, 3), -1)
    people[:, kept] = 1
    people[:29] = 1
    found = alt_test(people, np.ones(80, dtype=np.int64), seed=1)
    assert (found.cases, found.reason) == ((), FEW_RATERS)
    assert (found.winning_rate, found.advantage, found.alt_test, found.balanced) == (None,) * 4


def test_without_one_class_the_balanced_gap_is_undefined_and_beats_nobody() -> None:
    found = alt_test(np.ones((50, 3), dtype=np.int64), np.ones(50, dtype=np.int64), seed=1)
    assert found.alt_test is True
    assert found.balanced is False
    assert [case.gap.reason for case in found.cases] == ["the other raters gave one answer only"] * 3


def test_on_many_chats_the_interval_of_the_gap_is_what_the_bootstrap_converges_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(1200) < 0.9
    people, judge = (
        np.where(rng.random(shape) < right, truth[:, np.newaxis], ~truth[:, np.newaxis]).astype(np.int64)
        for shape, right in (((1200, 4), 0.9), ((1200, 1), 0.85))
    )

    def gaps() -> NDArray[np.float64]:
        cases = alt_test(people, judge[:, 0], seed=1, resamples=40_000).cases
        found = [case.gap for case in cases]
        return np.array([(one.value, one.interval.low, one.interval.high) for one in found if one.interval])

    limit = gaps()
    monkeypatch.setattr(module, "MANY_CHATS", len(truth) + 1)
    resampled = gaps()
    assert (limit[:, 0] == resampled[:, 0]).all()
    errors = (limit[:, 2] - limit[:, 1]) / (2 * 1.645)
    # Half of what 2,000 resamples leave open: their quantile's own error is 0.05 of the gap's.
    assert np.abs((limit - resampled)[:, 1:] / errors[:, np.newaxis]).max() < 0.025


def test_a_rare_class_is_resampled_for_any_number_of_chats() -> None:
    people = np.ones((2000, 3), dtype=np.int64)
    people[: MANY_CHATS - 1] = 0
    judge = np.ones(2000, dtype=np.int64)
    judge[::2] = 0
    interval = alt_test(people, judge, seed=1).cases[0].gap.interval
    assert interval is not None
    assert interval != alt_test(people, judge, seed=2).cases[0].gap.interval
