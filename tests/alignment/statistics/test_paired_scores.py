"""Two scores of the same chats: published correlations, hand-computed means, and honest intervals."""

import numpy as np
import pytest

from alignment.statistics.paired_scores import CONSTANT, NO_PAIR, mean_score, paired_scores, pearson, spearman

# Anscombe (1973), Am Stat 27:17, data set I: r = 0.816.
ANSCOMBE_X = np.array([10.0, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5])
ANSCOMBE_Y = np.array([8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68])
# Wikipedia, Spearman's rank correlation coefficient: IQ and hours of television, rho = -29/165.
IQ = np.array([106.0, 100, 86, 101, 99, 103, 97, 113, 112, 110])
TV = np.array([7.0, 27, 2, 50, 28, 29, 20, 12, 6, 17])


def test_pearson_is_the_published_value() -> None:
    assert pearson(ANSCOMBE_X, ANSCOMBE_Y) == pytest.approx(0.816, abs=0.0005)


def test_spearman_is_the_published_value() -> None:
    assert spearman(IQ, TV) == pytest.approx(-29 / 165, abs=1e-12)


def test_equal_values_share_their_mean_rank() -> None:
    # By hand: ranks 1.5 1.5 3 and 1 2 3, r = 1.5 / sqrt(1.5 * 2).
    assert spearman(np.array([0.5, 0.5, 1.0]), np.array([0.1, 0.2, 0.3])) == pytest.approx(
        1.5 / np.sqrt(1.5 * 2)
    )


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_a_correlation_with_a_constant_is_undefined(correlation) -> None:
    varied, constant = np.array([0.1, 0.2, 0.9]), np.full(3, 0.1)
    assert correlation(varied, constant) is None
    assert correlation(constant, varied) is None
    assert correlation(np.array([0.5]), np.array([0.5])) is None


def test_means_and_difference_are_those_computed_by_hand() -> None:
    found = paired_scores(np.array([0.0, 0.5, 1.0, 1.0]), np.array([0.25, 0.5, 0.75, 1.0]), seed=1)
    assert (found.first.value, found.second.value, found.difference.value) == (0.625, 0.625, 0.0)
    # By hand: products 0.28125, squares 0.6875 and 0.3125.
    assert found.correlation.value == pytest.approx(0.4375 / np.sqrt(0.6875 * 0.3125))
    assert found.first.interval is found.difference.interval is None
    assert found.difference.reason == "too few chats to resample: 4 of 10"


def test_without_a_pair_nothing_is_defined() -> None:
    found = paired_scores(np.array([]), np.array([]), seed=1)
    assert (found.first.value, found.correlation.value, found.rank_correlation) == (None, None, None)
    assert found.difference.reason == NO_PAIR


def test_a_constant_side_leaves_the_correlation_undefined_with_a_reason() -> None:
    found = paired_scores(np.linspace(0, 1, 20), np.ones(20), seed=1)
    assert (found.correlation.value, found.correlation.reason) == (None, CONSTANT)
    assert found.difference.interval is not None


def test_equal_scores_have_an_interval_with_a_width() -> None:
    scores = np.tile([0.0, 0.8, 1.0], 10)
    found = paired_scores(scores, scores, seed=1)
    assert found.difference.interval is not None and found.correlation.interval is not None
    assert found.difference.interval.low < 0 < found.difference.interval.high
    assert found.correlation.interval.low < 1 == pytest.approx(found.correlation.interval.high)


def test_with_many_chats_the_interval_is_the_normal_one() -> None:
    draw = np.random.default_rng(3)
    first, second = draw.random(20_000), draw.random(20_000)
    found = paired_scores(first, second, seed=1)
    margin = 1.96 * (second - first).std(ddof=1) / np.sqrt(20_000)
    assert found.difference.value is not None and found.difference.interval is not None
    assert found.difference.interval.low == pytest.approx(found.difference.value - margin, abs=0.0004)
    assert found.difference.interval.high == pytest.approx(found.difference.value + margin, abs=0.0004)
    # Fisher (1921): independent uniform scores have a standard error of 1 / sqrt(n).
    assert found.correlation.interval is not None
    width = found.correlation.interval.high - found.correlation.interval.low
    assert width == pytest.approx(2 * 1.96 / np.sqrt(20_000), rel=0.1)


def test_five_copies_of_each_chat_carry_no_more_information_than_one() -> None:
    draw = np.random.default_rng(5)
    first, second = draw.random(60), draw.random(60)
    alone = paired_scores(first, second, seed=1).difference
    copies = paired_scores(
        np.repeat(first, 5), np.repeat(second, 5), clusters=np.repeat(np.arange(60), 5), seed=1
    ).difference
    assert copies.value == pytest.approx(alone.value)
    assert copies.interval is not None and alone.interval is not None
    assert copies.interval.low == pytest.approx(alone.interval.low, abs=0.01)
    assert copies.interval.high == pytest.approx(alone.interval.high, abs=0.01)


def test_the_same_seed_gives_the_same_interval() -> None:
    first, second = np.linspace(0, 1, 30), np.linspace(1, 0, 30)
    assert paired_scores(first, second, seed=7) == paired_scores(first, second, seed=7)


def test_a_score_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        paired_scores(np.array([1.5]), np.array([0.5]), seed=1)
    with pytest.raises(ValueError, match="2 scores against 1"):
        paired_scores(np.array([0.5, 1.0]), np.array([0.5]), seed=1)


def test_a_mean_alone_has_the_same_interval_as_in_a_pair() -> None:
    scores = np.tile([0.0, 1.0], 20)
    mean = mean_score(scores, seed=1, reason="none")
    assert mean == paired_scores(scores, scores, seed=1).second
    assert mean_score(np.array([]), seed=1, reason="none").reason == "none"
