"""One criterion in full: parts of the chats, pairs of raters, who may be replaced, stated probabilities."""

from collections.abc import Sequence

import numpy as np
import pytest

from alignment.comparison.core.codes import HumanCode, JudgeCode
from alignment.criterion_report.core import by_part, diagram, length_bins, probabilities, rater_comparison
from alignment.criterion_report.core.raters import FEW_CHATS, NOBODY, ONE_RATER, RATERS_SHOWN
from alignment.rater_quality.core import FALSE, NA, TRUE, Answers, rater_pairs
from alignment.statistics.agreement import Confusion
from alignment.statistics.alt_test import FEW_RATERS, alt_test
from alignment.statistics.label_needs import LabelCounts
from tests.factories.report_data import F, T

# ---------- parts ----------


def test_each_part_counts_its_compared_chats_once() -> None:
    human = np.array([T, T, F, F, HumanCode.NA, HumanCode.UNLABELLED, T], dtype=np.int8)
    judge = np.array([T, F, T, F, T, T, JudgeCode.UNPARSED], dtype=np.int8)
    found = by_part(human, judge, np.array([0, 1, 1, 1, 0, 0, 2]))
    assert [(part.place, part.table) for part in found] == [
        (0, Confusion(1, 0, 0, 0)),
        (1, Confusion(0, 1, 1, 1)),
    ]


def test_a_part_says_what_is_undefined_and_when_it_is_a_hint_only() -> None:
    codes = np.zeros(30, dtype=np.int8)
    body = by_part(codes, codes, np.zeros(30, dtype=np.int64))[0].as_json()
    assert (body["n"], body["few"], body["tpr"]["value"], body["balanced_accuracy"]["value"]) == (
        30,
        False,
        1.0,
        None,
    )
    assert body["tpr"]["low"] == pytest.approx(30 / (30 + 1.959964**2), abs=1e-6)  # Wilson, n of n
    assert set(body["undefined"]) == {"tnr", "balanced_accuracy"}
    assert by_part(codes[:29], codes[:29], np.zeros(29, dtype=np.int64))[0].few


def test_a_part_counts_its_clusters_of_chats() -> None:
    human, judge = (np.tile(np.array(codes, dtype=np.int8), 30) for codes in ([T, T, F, F], [T, F, F, T]))
    place, clusters = np.arange(120) % 2, np.arange(120) // 4
    apart, together = by_part(human, judge, place), by_part(human, judge, place, clusters)
    alone = by_part(human, judge, place, np.arange(120))
    for one, same, grouped in zip(apart, alone, together, strict=True):
        assert one.as_json() == same.as_json()
        assert grouped.as_json()["confusion"] == one.as_json()["confusion"]
    copies = np.tile(np.arange(40), 3)
    once, thrice = by_part(human[:40], judge[:40], place[:40]), by_part(human, judge, place, copies)
    for one, same in zip(once, thrice, strict=True):
        single, repeated = (part.rates["balanced_accuracy"].interval for part in (one, same))
        assert single
        assert repeated
        assert repeated.high - repeated.low >= 0.95 * (single.high - single.low)


def test_no_chat_has_no_part() -> None:
    nothing = np.zeros(0, dtype=np.int8)
    assert by_part(nothing, nothing, length_bins(np.zeros(0, dtype=np.int64))) == []


# ---------- raters ----------

LABELS = LabelCounts(true=100, false=100, three=200, three_false=100)


def answers(*rows: Sequence[int | None]) -> Answers:
    """A row a rater, a column a chat; None where the rater gave no answer."""
    given = [
        (chat, rater, value)
        for rater, row in enumerate(rows)
        for chat, value in enumerate(row)
        if value is not None
    ]
    chats, raters, values = np.array(given, dtype=np.int64).reshape(-1, 3).T
    return Answers(chats, np.zeros(len(chats), dtype=np.int64), raters, values)


def of_table(tp: int, fn: int, fp: int, tn: int) -> Answers:
    first = [TRUE] * (tp + fn) + [FALSE] * (fp + tn)
    return answers(first, [TRUE] * tp + [FALSE] * fn + [TRUE] * fp + [FALSE] * tn)


def test_a_pair_has_the_published_agreement_kappa_and_ac1() -> None:
    # Gwet 2002: 118/5/2/0; agreement .944, kappa -.0234, AC1 .941 by their definitions.
    found = rater_pairs(of_table(118, 5, 2, 0), np.array([0, 1]))
    assert found[0][0] is None
    pair = found[0][1]
    assert pair == found[1][0]
    assert pair is not None and (pair.n, pair.few) == (125, False)
    assert pair.agreement == pytest.approx(0.944)
    assert pair.kappa == pytest.approx(-0.02339, abs=2e-5)
    share = (123 + 120) / 250
    chance = 2 * share * (1 - share)
    assert pair.ac1 == pytest.approx((0.944 - chance) / (1 - chance))
    assert pair.ac1 == pytest.approx(0.9408, abs=1e-4)


def test_not_applicable_is_a_category_of_ac1_only_where_somebody_chose_it() -> None:
    two = rater_pairs(answers([TRUE, FALSE], [TRUE, TRUE]), np.array([0, 1]))[0][1]
    three = rater_pairs(answers([TRUE, FALSE, None], [TRUE, TRUE, NA]), np.array([0, 1]))[0][1]
    assert two is not None and three is not None
    # Shares 3/4 and 1/4: chance 2 * 3/16 with two categories, half of it with three.
    assert two.ac1 == pytest.approx((1 / 2 - 3 / 8) / (5 / 8))
    assert three.ac1 == pytest.approx((1 / 2 - 3 / 16) / (13 / 16))


def test_two_raters_without_a_common_chat_have_nothing_to_compare() -> None:
    pair = rater_pairs(answers([TRUE, None], [None, TRUE]), np.array([0, 1]))[0][1]
    assert pair is not None
    assert (pair.n, pair.agreement, pair.kappa, pair.ac1) == (0, None, None, None)


def test_rater_and_judge_are_held_against_the_majority_of_the_others_on_the_same_chats() -> None:
    given = answers(
        [TRUE, TRUE, FALSE, FALSE, TRUE, TRUE],
        [TRUE, FALSE, FALSE, FALSE, TRUE, TRUE],
        [TRUE, TRUE, FALSE, TRUE, TRUE, NA],
    )
    judge = np.array([T, F, F, T, JudgeCode.REFUSED, T], dtype=np.int8)
    rows = rater_comparison(given, judge, raters=3, counts=LABELS, seed=1).rows
    # The first rater's others are one mind on chats 0 (True) and 2 (False); on 4 the judge says nothing.
    assert (rows[0].own, rows[0].judge) == (Confusion(1, 0, 0, 1), Confusion(1, 0, 0, 1))
    # The second one's on 0, 1 (True) and 2: on 1 rater and judge say False.
    assert (rows[1].own, rows[1].judge) == (Confusion(1, 1, 0, 1), Confusion(1, 1, 0, 1))
    # The third one's on 0 (True), 2 and 3 (False); on 5 this rater says neither True nor False.
    assert (rows[2].own, rows[2].judge) == (Confusion(1, 0, 1, 1), Confusion(1, 0, 1, 1))


def planted(chats: int = 200) -> tuple[Answers, np.ndarray]:
    rng = np.random.default_rng(7)
    truth = (rng.random(chats) < 0.3).astype(int)
    noisy = [np.where(rng.random(chats) < 0.9, truth, 1 - truth) for _ in range(4)]
    return answers(*(row.tolist() for row in noisy[:3])), noisy[3].astype(np.int8)


def test_the_decision_is_that_of_the_balanced_gap_with_the_alt_test_beside_it() -> None:
    given, judge = planted()
    found = rater_comparison(given, judge, raters=3, counts=LABELS, seed=1)
    labels = np.array([1 - given.values[given.raters == rater] for rater in range(3)]).T
    expected = alt_test(labels, 1 - judge.astype(int), seed=1)
    body = found.as_json()["stand_in"]
    assert (body["balanced"], body["alt_test"], body["winning_rate"], body["raters"]) == (
        expected.balanced,
        expected.alt_test,
        expected.winning_rate,
        3,
    )
    assert [row.case for row in found.rows] == list(expected.cases)
    assert body["reason"] == ""


def test_a_decision_on_fewer_labels_than_the_plan_asks_for_says_which_are_missing() -> None:
    def missing(counts: LabelCounts) -> str:
        given, judge = planted()
        body = rater_comparison(given, judge, raters=3, counts=counts, seed=1).as_json()
        assert body["stand_in"]["balanced"] is True
        return str(body["stand_in"]["missing"])

    assert missing(LabelCounts(true=30, false=10, three=40, three_false=10)) == (
        "label 60 more chats with three raters, at least 5 False"
    )
    assert missing(LabelCounts(true=85, false=15, three=100, three_false=15)) == ""
    # More than 85% True, whoever answered: three times as many.
    assert missing(LabelCounts(true=186, false=14, three=100, three_false=15)) != ""


@pytest.mark.parametrize(("raters", "reason"), [(0, NOBODY), (1, ONE_RATER), (2, FEW_RATERS)])
def test_too_few_raters_decide_nothing_and_it_says_so(raters: int, reason: str) -> None:
    given = answers(*[[TRUE] * 50 for _ in range(raters)])
    body = rater_comparison(
        given, np.zeros(50, dtype=np.int8), raters=raters, counts=LABELS, seed=1
    ).as_json()
    assert (body["stand_in"]["balanced"], body["stand_in"]["reason"]) == (None, reason)
    assert len(body["raters"]) == raters


def test_a_rater_with_fewer_than_thirty_chats_is_left_out_of_the_decision() -> None:
    whole, judge = planted()
    kept = (whole.raters < 2) | (whole.chats < 29)
    fourth = answers(*[whole.values[whole.raters == rater].tolist() for rater in range(3)])
    extra = whole.where(kept).where(whole.where(kept).raters == 2)
    given = Answers(
        np.concatenate([fourth.chats, extra.chats]),
        np.concatenate([fourth.criteria, extra.criteria]),
        np.concatenate([fourth.raters, extra.raters + 1]),
        np.concatenate([fourth.values, extra.values]),
    )
    body = rater_comparison(given, judge, raters=4, counts=LABELS, seed=1).as_json()
    assert body["stand_in"]["raters"] == 3
    assert [row["reason"] for row in body["raters"]] == ["", "", "", FEW_CHATS]


def test_of_many_raters_those_with_the_most_labels_are_shown_and_all_count() -> None:
    rows = [[TRUE] * (50 + rater) + [None] * (20 - rater) for rater in range(15)]
    found = rater_comparison(answers(*rows), np.zeros(70, dtype=np.int8), raters=15, counts=LABELS, seed=1)
    body = found.as_json()
    assert [row["rater"] for row in body["raters"]] == list(range(14, 14 - RATERS_SHOWN, -1))
    assert len(body["pairs"]) == RATERS_SHOWN * (RATERS_SHOWN - 1) // 2
    assert (body["total"], body["stand_in"]["raters"]) == (15, 15)


# ---------- probabilities ----------


def test_the_brier_score_is_scikit_learns_example_and_is_shown_with_that_of_a_constant() -> None:
    # scikit-learn, docstring of brier_score_loss: 0.0375.
    found = probabilities(np.array([F, T, T, F], dtype=np.int8), np.array([0.1, 0.9, 0.8, 0.3]))
    assert (found["n"], found["constant"], found["ece"], found["bins"]) == (4, 0.25, None, [])
    assert found["brier"] == pytest.approx(0.0375)
    assert found["reason"]


def test_a_chat_without_an_answer_or_a_probability_does_not_count() -> None:
    human = np.array([T, HumanCode.UNRESOLVED, F], dtype=np.int8)
    assert probabilities(human, np.array([1.0, 0.5, np.nan]))["n"] == 1
    nothing = probabilities(human, np.full(3, np.nan))
    assert (nothing["n"], nothing["brier"], nothing["constant"]) == (0, None, None)


def test_from_a_hundred_on_there_are_bins_with_intervals_and_a_drawing() -> None:
    human = np.array([T] * 50 + [F] * 50, dtype=np.int8)
    found = probabilities(human, np.array([0.95] * 40 + [0.05] * 60))
    assert found["ece"] == pytest.approx(0.4 * 0.05 + 0.6 * (1 / 6 - 0.05))
    assert [(one["n"], one["observed"]["value"]) for one in found["bins"]] == [(60, 10 / 60), (40, 1.0)]
    plotted = diagram(found["bins"])
    assert [dot.radius for dot in plotted.dots] == [9.0, 7.3]  # the area grows with n
    assert all(plotted.top <= dot.high <= dot.y <= dot.low <= plotted.bottom for dot in plotted.dots)
    assert plotted.label.startswith("stated 0.05, observed 0.17 (60 verdicts)")
