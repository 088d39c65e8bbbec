"""Quality figures against published values, scikit-learn and statsmodels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from alignment.rater_quality.core import (
    ALONE,
    FALSE,
    NA,
    TIED,
    TRUE,
    Agreement,
    Answers,
    agreements,
    majority_of_others,
    pair_tables,
    pooled,
    shortest_ms,
)
from alignment.rater_quality.core.trend import trend

Table = list[list[int]]
# Feinstein & Cicchetti 1990, as printed in Gerstman, Epidemiology Kept Simple, Table 10.6.
FEINSTEIN_A = [[40, 9], [6, 45]]


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def from_table(table: Table) -> tuple[list[int], list[int]]:
    """Reference and answers that make up the table, one chat each."""
    cells = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return [i for i, _ in cells], [j for _, j in cells]


def one_rater(reference: list[int], values: list[int], chats: list[int] | None = None) -> Agreement:
    places = chats if chats is not None else list(range(len(values)))
    return pooled(chats=ints(*places), reference=ints(*reference), values=ints(*values))


def team(*rows: tuple[int, ...]) -> Answers:
    """A row a rater, a column a chat; -9 = no answer."""
    cells = [
        (chat, rater, value)
        for rater, row in enumerate(rows)
        for chat, value in enumerate(row)
        if value != -9
    ]
    chats, raters, values = (ints(*column) for column in zip(*cells, strict=True))
    return Answers(chats, np.zeros_like(chats), raters, values)


def test_agreement_and_kappa_equal_published_values() -> None:
    found = one_rater(*from_table(FEINSTEIN_A))
    assert (found.n, found.chats, found.agreeing) == (100, 100, 85)
    assert found.share.value == 0.85
    assert found.kappa.value == pytest.approx(0.7, abs=0.005)


def test_kappa_of_three_answers_equals_scikit_learns_example() -> None:
    # Docstring of sklearn.metrics.cohen_kappa_score: negative, positive, neutral.
    found = one_rater([FALSE, TRUE, FALSE, NA, TRUE], [FALSE, TRUE, FALSE, NA, FALSE])
    assert found.kappa.value == pytest.approx(0.6875, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=60))
def test_kappa_equals_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    reference, values = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = one_rater(reference, values)
    if len({*reference, *values}) == 1:
        assert found.kappa.value is None
    else:
        expected = cohen_kappa_score(reference, values, labels=[0, 1, 2])
        assert found.kappa.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("table", [FEINSTEIN_A, [[300, 40, 5], [30, 200, 9], [8, 2, 60]]], ids=["2x2", "3x3"])
def test_the_jackknife_of_kappa_is_near_the_analytic_interval_when_chats_are_many(table: Table) -> None:
    many = [[10 * n for n in row] for row in table]
    found, expected = one_rater(*from_table(many)), cohens_kappa(np.array(many))
    assert found.kappa.interval is not None
    assert found.kappa.interval.low == pytest.approx(expected.kappa_low, abs=0.003)
    assert found.kappa.interval.high == pytest.approx(expected.kappa_upp, abs=0.003)


@given(st.integers(10, 200), st.integers(0, 200))
def test_with_one_answer_a_chat_the_interval_of_agreement_is_wilsons(n: int, agreeing: int) -> None:
    agreeing = min(agreeing, n)
    found = one_rater([TRUE] * n, [TRUE] * agreeing + [FALSE] * (n - agreeing))
    assert found.share.interval is not None
    low, high = proportion_confint(agreeing, n, method="wilson")
    assert (found.share.interval.low, found.share.interval.high) == pytest.approx((low, high), abs=1e-6)


def test_correlated_answers_count_as_one_per_chat() -> None:
    # Five identical rows a chat: the standard error grows by the square root of 5.
    alone = one_rater(*from_table(FEINSTEIN_A))
    reference, values = ([x for x in rows for _ in range(5)] for rows in from_table(FEINSTEIN_A))
    repeated = one_rater(reference, values, chats=[chat for chat in range(100) for _ in range(5)])
    assert (repeated.n, repeated.chats) == (500, 100)
    for name in ("share", "kappa"):
        once, often = getattr(alone, name), getattr(repeated, name)
        assert often.value == pytest.approx(once.value)
        assert (often.interval.low, often.interval.high) == pytest.approx(
            (once.interval.low, once.interval.high)
        )


def test_raters_do_not_disturb_each_other() -> None:
    reference, values = from_table(FEINSTEIN_A)
    two = agreements(
        raters=ints(*([0] * 100), *([2] * 100)),
        chats=ints(*range(100), *range(100)),
        reference=ints(*reference, *reference),
        values=ints(*values, *reference),
        number=3,
    )
    assert two[0] == one_rater(reference, values)
    assert (two[1].n, two[1].share.value, two[1].kappa.value) == (0, None, None)
    assert two[2].share.value == 1.0


@pytest.mark.parametrize(
    ("reference", "values", "reason"),
    [
        ([TRUE, FALSE] * 4, [TRUE, FALSE] * 4, "needs 10 chats for an interval"),
        ([TRUE, FALSE] * 10, [TRUE, FALSE] * 10, "the value is the same without any one chat"),
        ([TRUE] * 20, [TRUE] * 19 + [FALSE], "without one of the chats"),
    ],
)
def test_a_missing_interval_of_kappa_has_a_reason(
    reference: list[int], values: list[int], reason: str
) -> None:
    found = one_rater(reference, values)
    assert found.kappa.interval is None
    assert reason in found.kappa.reason


def test_a_rater_who_always_gives_one_answer_is_flagged() -> None:
    found = one_rater([TRUE] * 15 + [FALSE] * 15, [TRUE] * 30)
    assert (found.kappa.value, found.kappa.flag) == (0.0, "one of the two gave a single answer")


def test_fewer_than_thirty_answers_or_ten_chats_are_few() -> None:
    assert one_rater([TRUE] * 29, [TRUE] * 29).few
    assert not one_rater([TRUE] * 30, [TRUE] * 30).few
    assert one_rater([TRUE] * 30, [TRUE] * 30, chats=[place % 9 for place in range(30)]).few


def test_the_majority_of_the_others_leaves_the_rater_out() -> None:
    answers = team((TRUE, TRUE, NA, TRUE), (TRUE, FALSE, NA, -9), (FALSE, FALSE, NA, -9))
    expected = {
        0: [TIED, FALSE, NA, ALONE],  # by chat, for the first rater
        1: [TIED, TIED, NA],
        2: [TRUE, TIED, NA],
    }
    majority = majority_of_others(answers)
    assert {rater: majority[answers.raters == rater].tolist() for rater in range(3)} == expected


def test_a_majority_is_strict_and_counts_not_applicable() -> None:
    answers = team((FALSE,), (TRUE,), (TRUE,), (NA,), (NA,))
    assert majority_of_others(answers)[0] == TIED
    answers = team((FALSE,), (TRUE,), (TRUE,), (NA,))
    assert majority_of_others(answers)[0] == TRUE


def test_the_same_chat_on_two_criteria_is_two_questions() -> None:
    answers = Answers(ints(0, 0), ints(0, 1), ints(0, 1), ints(TRUE, TRUE))
    assert majority_of_others(answers).tolist() == [ALONE, ALONE]


rows = st.lists(st.sampled_from([TRUE, FALSE, NA, -9]), min_size=8, max_size=8).map(tuple)


@pytest.mark.heavy
@given(st.lists(rows, min_size=2, max_size=5))
def test_pair_tables_equal_scikit_learn(raters: list[tuple[int, ...]]) -> None:
    if all(value == -9 for row in raters for value in row):
        return
    tables = pair_tables(team(*raters), raters=len(raters))
    for i, first in enumerate(raters):
        for j, second in enumerate(raters):
            both = [(a, b) for a, b in zip(first, second, strict=True) if -9 not in (a, b)]
            expected = (
                confusion_matrix([a for a, _ in both], [b for _, b in both], labels=[0, 1, 2])
                if both
                else np.zeros((3, 3))
            )
            assert tables[i, j].tolist() == expected.tolist()


def test_nothing_at_all_is_no_error() -> None:
    nothing = Answers(ints(), ints(), ints(), ints())
    assert majority_of_others(nothing).size == 0
    assert pair_tables(nothing, raters=0).shape == (0, 0, 3, 3)
    assert one_rater([], []).n == 0


def test_the_trend_has_ten_parts_of_ten_answers_or_fewer_parts() -> None:
    assert len(trend([True] * 1000)) == 10
    assert len(trend([True] * 57)) == 5
    assert trend([True] * 29) == []
    parts = trend([False] * 50 + [True] * 50)
    assert [part.value for part in parts] == [0.0] * 5 + [1.0] * 5
    assert parts[0].interval is not None
    assert parts[0].interval.high == pytest.approx(proportion_confint(0, 10, method="wilson")[1])


def test_the_shortest_time_is_that_of_skimming_and_of_the_keys() -> None:
    # 238 words a minute (Brysbaert 2019) of 6 characters are 23.8 a second: reading is never rushed.
    characters, answers = 4000, 13
    reading = 1000 * characters / 23.8
    assert shortest_ms(characters=characters, answers=answers) < reading
    assert math.isclose(shortest_ms(characters=6000, answers=0), 100_000)
    assert math.isclose(shortest_ms(characters=0, answers=10), 2_000)
