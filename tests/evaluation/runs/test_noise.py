"""The flip rate of a judge's samples is the chance that two of its answers differ."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.types import Votes
from evaluation.runs.core.noise import flip_rate, mean_flip_rate

COUNT = st.integers(min_value=0, max_value=6)


@given(COUNT, COUNT, COUNT)
def test_flip_rate_is_the_share_of_pairs_that_differ(true: int, false: int, neither: int) -> None:
    answers = ["t"] * true + ["f"] * false + ["n"] * neither
    pairs = [a != b for a, b in combinations(answers, 2)]
    rate = flip_rate(Votes(true, false, neither))
    assert rate == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)


def test_five_answers_of_which_one_differs() -> None:
    assert flip_rate(Votes(4, 1, 0)) == pytest.approx(0.4)


@pytest.mark.parametrize("votes", [Votes(0, 0, 0), Votes(1, 0, 0), Votes(0, 0, 1)])
def test_fewer_than_two_answers_have_no_flip_rate(votes: Votes) -> None:
    assert flip_rate(votes) is None


def test_mean_leaves_out_what_has_no_rate() -> None:
    assert mean_flip_rate([Votes(2, 0, 0), Votes(1, 1, 0), Votes(1, 0, 0)]) == pytest.approx(0.5)
    assert mean_flip_rate([Votes(1, 0, 0)]) is None
    assert mean_flip_rate([]) is None
