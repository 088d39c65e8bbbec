"""Judges in pairs: the arithmetic by hand, a planted better judge, equal judges, chats as clusters."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from alignment.comparison.core.codes import HumanCode, JudgeCode
from alignment.judge_comparison.core import CriterionAnswers, Exclusion, Group, compare
from alignment.judge_comparison.core.cost_effectiveness import cost_effectiveness
from alignment.statistics.intervals import wilson
from alignment.statistics.paired_tests import PairedTable, tango_interval

T, F, NA, REFUSED = JudgeCode.TRUE, JudgeCode.FALSE, JudgeCode.NA, JudgeCode.REFUSED
Bools = NDArray[np.bool_]


def answers(
    human: Sequence[int], *judges: Sequence[int], key: str = "polite", tier: str = "simple", counts: int = 0
) -> CriterionAnswers:
    codes = np.array(human, dtype=np.int8)
    labels = np.full((len(codes), 3), 0)
    labels[codes == HumanCode.TRUE, 0] = labels[codes == HumanCode.FALSE, 1] = counts
    return CriterionAnswers(key, tier, codes, np.array(judges, dtype=np.int8), labels)


def right_or_wrong(right: Bools, *, key: str, tier: str = "simple") -> CriterionAnswers:
    """Answers from `right`, (judges, chats); the consensus alternates between True and False."""
    human = (np.arange(right.shape[1]) % 2).astype(np.int8)
    judges = np.where(right, human, 1 - human).astype(np.int8)
    return CriterionAnswers(key, tier, human, judges, np.zeros((right.shape[1], 3), dtype=np.int64))


def simulated(
    rng: np.random.Generator, *, rates: tuple[float, ...], chats: int, criteria: int
) -> list[Group]:
    """Judges with these accuracies; the difficulty of a chat is shared by its criteria and judges."""
    hard = rng.normal(size=(1, chats)) * 0.5 + rng.normal(size=(len(rates), chats)) * 0.5
    noise = rng.normal(size=(criteria, len(rates), chats)) * np.sqrt(0.5)
    limits = np.quantile(rng.normal(size=100_000), rates)[:, np.newaxis]
    tiers = ("simple", "context")
    return compare(
        [right_or_wrong(hard + noise[n] < limits, key=f"c{n}", tier=tiers[n % 2]) for n in range(criteria)],
        runs=range(len(rates)),
    )


# ---------- by hand ----------


def test_only_answers_of_raters_and_every_judge_are_compared() -> None:
    human = [T, F, T, F, HumanCode.NA, HumanCode.UNRESOLVED, HumanCode.UNLABELLED]
    one, other = [T, F, NA, F, T, T, T], [T, T, T, REFUSED, T, F, T]
    overall, simple = compare([answers(human, one, other)], runs=[4, 9])
    assert (overall.key, simple.key) == ("overall", "simple")
    assert (overall.n, overall.chats, overall.answered) == (2, 2, 4)
    assert [row.table.cells.tolist() for row in overall.results] == [[1, 0, 0, 1], [1, 0, 1, 0]]
    (pair,) = overall.pairs
    assert (pair.first, pair.second) == (4, 9)
    assert pair.table == PairedTable(both=1, first=1, second=0, neither=0)
    assert pair.difference.value == 0.5


def test_a_chat_that_counts_once_gets_the_plain_intervals() -> None:
    human = [T] * 20 + [F] * 20
    one = [T] * 18 + [F] * 2 + [F] * 15 + [T] * 5
    other = [T] * 12 + [F] * 8 + [F] * 17 + [T] * 3
    (pair,) = compare([answers(human, one, other)], runs=[1, 2])[0].pairs
    assert pair.table == PairedTable(both=27, first=6, second=2, neither=5)
    plain = tango_interval(pair.table)
    assert plain and pair.difference.interval
    assert pair.difference.interval.low == pytest.approx(plain.low)
    assert pair.difference.interval.high == pytest.approx(plain.high)
    standing = compare([answers(human, one, other)], runs=[1, 2])[0].results[0]
    tpr, expected = standing.rates["tpr"], wilson(18, 20)
    assert tpr.value == 0.9 and tpr.interval and expected
    assert tpr.interval.low == pytest.approx(expected.low)
    assert tpr.interval.high == pytest.approx(expected.high)


def test_criteria_that_only_repeat_each_other_add_no_certainty() -> None:
    rng = np.random.default_rng(3)
    right = rng.random((2, 60)) < np.array([[0.9], [0.7]])
    once = compare([right_or_wrong(right, key="a")], runs=[1, 2])[0].pairs[0]
    five = compare([right_or_wrong(right, key=str(n)) for n in range(5)], runs=[1, 2])[0].pairs[0]
    assert five.table.n == 5 * once.table.n
    assert once.difference.interval and five.difference.interval
    assert five.difference.interval.low == pytest.approx(once.difference.interval.low, abs=0.01)
    assert five.difference.interval.low < once.difference.interval.low  # its correlation is estimated
    assert once.p and five.p and once.p < five.p < 0.01


def test_the_ceiling_is_that_of_the_compared_answers() -> None:
    human, judge = [T, F, T], [T, F, NA]
    overall = compare([answers(human, judge, judge, counts=3)], runs=[1, 2])[0]
    assert overall.ceiling.value == 1.0


def test_an_undefined_ceiling_has_a_reason() -> None:
    alone = compare([answers([T, F], [T, F], [T, F], counts=1)], runs=[1, 2])[0]
    assert (alone.ceiling.value, alone.ceiling.reason) == (None, "no chat with two raters")
    one_answer = compare([answers([T, T], [T, T], [T, T], counts=3)], runs=[1, 2])[0]
    assert one_answer.ceiling.value is None and "no True or no False majority" in one_answer.ceiling.reason
    assert one_answer.as_json()["undefined"] == {"ceiling": one_answer.ceiling.reason}


def test_tiers_are_apart_and_overall_is_their_sum() -> None:
    rng = np.random.default_rng(5)
    groups = simulated(rng, rates=(0.9, 0.8, 0.7), chats=50, criteria=4)
    assert [group.key for group in groups] == ["overall", "simple", "context"]
    overall, simple, context = groups
    assert overall.n == simple.n + context.n == 200
    for place in range(3):
        first = [group.pairs[place].table.first for group in groups]
        assert first[0] == first[1] + first[2]


def test_without_common_answers_all_is_undefined() -> None:
    overall = compare([answers([T, F], [T, F], [NA, NA])], runs=[1, 2])[0]
    (pair,) = overall.pairs
    assert (pair.difference.value, pair.difference.interval) == (None, None)
    assert (pair.better, pair.p, pair.p_holm) == (None, None, None)
    assert "every judge" in pair.difference.reason and "every judge" in overall.untested
    assert compare([], runs=[1, 2]) == []


def test_on_nine_chats_no_pair_is_tested_and_on_ten_it_is() -> None:
    nine, ten = (
        compare([answers([T] * n, [T] * n, [F] * n, key=str(key)) for key in range(5)], runs=[1, 2])[0]
        for n in (9, 10)
    )
    (untested,), (tested,) = nine.pairs, ten.pairs
    assert (nine.untested, ten.untested) == ("fewer than 10 chats", "")
    assert untested.table == PairedTable(both=0, first=45, second=0, neither=0)
    assert (untested.difference.value, untested.difference.interval) == (1.0, None)
    assert (untested.p, untested.p_holm, untested.more_right, untested.better) == (None, None, None, None)
    assert untested.as_json()["undefined"]["difference.interval"] == "fewer than 10 chats"
    assert cost_effectiveness(nine, prices={1: 0.003, 2: 0.001}).better == ()
    assert tested.more_right == 1


def test_holm_goes_over_the_tested_pairs_alone() -> None:
    many, few = [T, F] * 10, [T, F] * 2
    alone = compare([answers(many, many, [T] * 20)], runs=[1, 2])[0].pairs[0]
    both = compare(
        [
            answers(many, many, [T] * 20),
            answers([*few, *[HumanCode.UNLABELLED] * 16], many, many, key="b", tier="context"),
        ],
        runs=[1, 2],
    )
    assert both[2].untested and both[2].pairs[0].p_holm is None
    assert alone.p is not None and alone.p_holm == alone.p
    assert both[1].pairs[0].p_holm == pytest.approx(2 * alone.p)


def test_a_tier_that_holds_all_compared_answers_is_not_tested_twice() -> None:
    human, other = [T, F] * 10, [F, T] * 2 + [T, F] * 8
    nothing = answers([HumanCode.UNLABELLED] * 20, human, other, key="b", tier="context")
    overall, simple, context = compare([answers(human, human, other), nothing], runs=[1, 2])
    (all_of_them,), (the_tier,) = overall.pairs, simple.pairs
    assert overall.n == simple.n and context.untested
    assert all_of_them.p == the_tier.p == pytest.approx(0.0455, abs=1e-4)
    assert all_of_them.p_holm == the_tier.p_holm == all_of_them.p
    assert all_of_them.more_right == the_tier.more_right == 1


# ---------- what makes a comparison small ----------


def test_each_judge_counts_the_human_answers_it_answered() -> None:
    human, one, other = [T, F, T, HumanCode.NA], [T, T, NA, T], [T, REFUSED, REFUSED, T]
    overall = compare([answers(human, one, other)], runs=[4, 9])[0]
    assert [row.answered for row in overall.results] == [2, 1]


def test_a_judge_is_named_if_its_exclusion_adds_a_fifth() -> None:
    human, most, few = [T] * 12, [T] * 12, [T] * 10 + [NA] * 2
    overall = compare([answers(human, most, few, most)], runs=[4, 9, 11])[0]
    assert (overall.n, overall.exclusion) == (10, Exclusion((9,), 12))
    nearly = compare([answers(human, most, [T] * 11 + [NA], most)], runs=[4, 9, 11])[0]
    assert nearly.exclusion is None


def test_judges_that_make_it_small_only_together_are_named_together() -> None:
    human, full, none = [T] * 12, [T] * 12, [NA] * 12
    overall = compare([answers(human, none, full, none, full)], runs=[4, 9, 11, 12])[0]
    assert overall.exclusion == Exclusion((4, 11), 12)


def test_of_two_judges_none_is_excluded() -> None:
    assert compare([answers([T] * 12, [T] * 12, [NA] * 12)], runs=[4, 9])[0].exclusion is None


def test_arrays_of_another_length_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="polite: human, judges and counts"):
        CriterionAnswers(
            "polite", "simple", np.zeros(3, np.int8), np.zeros((2, 4), np.int8), np.zeros((3, 3), np.int64)
        )


# ---------- simulated ----------


def test_a_planted_better_judge_is_found_in_its_tier() -> None:
    rng = np.random.default_rng(11)
    same = rng.random((2, 150)) < 0.8
    better = rng.random((2, 150)) < np.array([[0.95], [0.75]])
    criteria = [
        *(right_or_wrong(same, key=f"s{n}", tier="simple") for n in range(2)),
        *(right_or_wrong(better, key=f"c{n}", tier="context") for n in range(2)),
    ]
    groups = {group.key: group for group in compare(criteria, runs=[7, 8])}
    assert groups["context"].pairs[0].better == 7
    assert groups["simple"].pairs[0].better is None


def test_balanced_accuracy_decides_against_a_majority_judge_with_a_higher_accuracy() -> None:
    rng = np.random.default_rng(13)
    human = (rng.random(400) < 0.07).astype(np.int8)
    sensible = np.where(rng.random(400) < 0.8, human, 1 - human)
    overall, _ = compare([answers(human.tolist(), [T] * 400, sensible.tolist())], runs=[1, 2])
    (pair,) = overall.pairs
    assert (pair.more_right, pair.more_balanced, pair.better) == (1, 2, 2)
    assert pair.balanced.value is not None and pair.balanced.value < -0.2
    assert cost_effectiveness(overall, prices={1: 0.003, 2: 0.001}).better == ()


def test_with_one_human_answer_no_judge_is_better_for_a_constant_one_could_win() -> None:
    overall, _ = compare([answers([T] * 40, [T] * 40, [F] * 40)], runs=[1, 2])
    (pair,) = overall.pairs
    assert (pair.more_right, pair.better) == (1, None)
    assert "human True and a human False" in pair.balanced.reason
    assert (overall.averaged, overall.left_out) == (0, ("polite",))


def test_a_difference_of_balanced_accuracies_is_computed_by_hand_and_not_bounded_below_ten_chats() -> None:
    one, other = [T, T, T, F, F, T], [T, F, F, F, T, T]
    overall, _ = compare([answers([T, T, T, F, F, F], one, other)], runs=[1, 2])
    balanced = overall.pairs[0].balanced
    assert balanced.value == pytest.approx((2 / 3 + 1 / 3) / 2) and balanced.interval is None


@pytest.mark.parametrize(("rare", "shown"), [(1, False), (2, False), (10, True)])
def test_a_perfect_and_a_constant_judge_differ_by_the_rare_answers(rare: int, shown: bool) -> None:
    human = [T] * (60 - rare) + [F] * rare
    balanced = compare([answers(human, human, [T] * 60)], runs=[1, 2])[0].pairs[0].balanced
    assert balanced.value == 0.5 and balanced.interval
    assert balanced.interval.low < 0.45 and balanced.interval.high > 0.52
    assert (balanced.interval.low > 0) is shown


MIXED = (0.9, 0.1)  # share of human True: criteria of opposite base rates


def mixed_criteria(
    rng: np.random.Generator, judges: Sequence[str], *, chats: int = 200
) -> list[CriterionAnswers]:
    """Six criteria of each base rate. "Constant" gives the frequent answer, "honest" errs on 15%."""
    criteria = []
    for number in range(12):
        human = (rng.random(chats) >= MIXED[number % 2]).astype(np.int8)
        right = {
            "constant": human == number % 2,
            "honest": rng.random(chats) < 0.85,
            "coin": rng.random(chats) < 0.5,
            "inverted": np.zeros(chats, dtype=np.bool_),
        }
        codes = np.array([np.where(right[name], human, 1 - human) for name in judges], dtype=np.int8)
        tier = ("simple", "context")[number // 6]
        criteria.append(
            CriterionAnswers(f"c{number}", tier, human, codes, np.zeros((chats, 3), dtype=np.int64))
        )
    return criteria


def test_a_judge_that_is_constant_by_criterion_has_balanced_accuracy_of_one_half() -> None:
    overall = compare(mixed_criteria(np.random.default_rng(5), ["constant", "honest"]), runs=[1, 2])[0]
    constant, honest = (row.rates["balanced_accuracy"] for row in overall.results)
    assert constant.value == pytest.approx(0.5)
    assert honest.value == pytest.approx(0.85, abs=0.03)
    assert overall.results[0].rates["accuracy"].value == pytest.approx(0.9, abs=0.02)
    assert (overall.averaged, overall.left_out) == (12, ())


def test_an_honest_judge_is_better_than_one_that_always_gives_the_frequent_answer() -> None:
    names = ["constant", "honest", "coin", "inverted"]
    for group in compare(mixed_criteria(np.random.default_rng(6), names), runs=range(4)):
        better = {(names[pair.first], names[pair.second]): pair.better for pair in group.pairs}
        assert better["constant", "honest"] == 1
        assert better["constant", "coin"] is None
        assert better["honest", "coin"] == better["honest", "inverted"] == 1
        (pair,) = (one for one in group.pairs if (one.first, one.second) == (0, 1))
        assert pair.more_balanced == 1 and pair.balanced.value == pytest.approx(-0.35, abs=0.05)


def test_a_judge_that_leaves_out_what_it_has_wrong_is_not_called_better() -> None:
    rng = np.random.default_rng(7)
    human = (rng.random(400) < 0.5).astype(np.int8)
    right = rng.random(400) < 0.55
    silent = np.where(right, human, JudgeCode.NONE)
    honest = np.where(rng.random(400) < 0.85, human, 1 - human)
    (pair,) = (
        overall := compare([answers(human.tolist(), silent.tolist(), honest.tolist())], runs=[1, 2])[0]
    ).pairs
    assert pair.more_balanced == 1 and pair.better is None
    assert overall.results[0].abstains and not overall.results[1].abstains
    assert overall.results[0].as_json()["unjudged_share"]["true"] == pytest.approx(0.45, abs=0.06)


@pytest.mark.parametrize("criteria_with_gaps", [4, 12])
def test_few_answers_left_out_where_they_are_wrong_make_no_judge_better(criteria_with_gaps: int) -> None:
    """At most 9% of each class on every criterion, or all wrong ones on four of twelve criteria."""
    rng = np.random.default_rng(11)
    criteria = []
    for number in range(12):
        human = (np.arange(400) % 2).astype(np.int8)
        right = rng.random((2, 400)) < 0.88
        codes = np.where(right, human, 1 - human).astype(np.int8)
        most = 18 if criteria_with_gaps == 12 else 200
        for answer in (T, F) if number < criteria_with_gaps else ():
            wrong = np.flatnonzero(~right[0] & (human == answer))[:most]
            codes[0, wrong] = JudgeCode.NONE
        criteria.append(answers(human.tolist(), *codes.tolist(), key=f"c{number}"))
    (pair,) = (overall := compare(criteria, runs=[1, 2])[0]).pairs
    assert not overall.results[0].abstains
    assert (pair.more_balanced, pair.better) == (1, None)
    assert pair.strict.value == pytest.approx(0, abs=0.03)


def test_a_judge_without_a_few_verdicts_is_better_if_it_stays_so_with_these_as_wrong() -> None:
    human = [T, F] * 100
    silent = [JudgeCode.NONE] * 6 + human[6:]
    coin = [T, T, F, F] * 50
    overall = compare([answers(human, silent, coin)], runs=[1, 2])[0]
    (pair,) = overall.pairs
    assert (pair.more_balanced, pair.better) == (1, 1)
    assert pair.strict.value == pytest.approx(0.97 - 0.5)
    assert pair.balanced.value == pytest.approx(0.5, abs=0.02)
    assert overall.results[0].as_json()["cautions"] == ["no verdict on 6 of 200 human answers"]


def test_a_class_without_verdicts_is_cautioned_though_few_answers_are_missing() -> None:
    human = [T] * 380 + [F] * 20
    overall = compare([answers(human, [*human[:-1], JudgeCode.NONE], human)], runs=[1, 2])[0]
    assert [bool(row.cautions) for row in overall.results] == [True, False]


def test_a_judge_that_was_not_asked_about_a_criterion_does_not_abstain_on_the_others() -> None:
    human = [T, F] * 20
    asked = answers(human, human, human, key="a")
    alone = answers(human, [JudgeCode.NONE] * 40, human, key="b")
    overall = compare([asked, alone], runs=[1, 2])[0]
    assert not overall.results[0].abstains
    assert (overall.averaged, overall.left_out) == (1, ("b",))


def test_a_criterion_whose_labels_cannot_measure_a_judge_is_not_compared() -> None:
    human = [T, F] * 20
    good = answers(human, human, [T] * 40, key="a")
    quarrel = replace(answers(human, [T] * 40, human, key="b"), problem="raters disagree: …")
    overall = compare([good, quarrel], runs=[1, 2])[0]
    assert (overall.n, overall.averaged, overall.problems) == (40, 1, {"b": "raters disagree: …"})
    assert overall.pairs[0].better == 1
    alone = compare([quarrel], runs=[1, 2])[0]
    assert (alone.n, alone.untested) == (0, "no criterion has labels that can measure a judge")
    assert alone.as_json()["label_problems"] == {"b": "raters disagree: …"}


def test_chats_of_one_cluster_count_together() -> None:
    rng = np.random.default_rng(8)
    human = (rng.random(60) < 0.5).astype(np.int8)
    right = rng.random((2, 60)) < np.array([[0.9], [0.7]])
    judges = np.where(right, human, 1 - human).astype(np.int8)
    once = CriterionAnswers("a", "simple", human, judges, np.zeros((60, 3), dtype=np.int64))
    copies = CriterionAnswers(
        "a", "simple", np.tile(human, 3), np.tile(judges, 3), np.zeros((180, 3), dtype=np.int64)
    )
    clusters = np.tile(np.arange(60), 3)
    alone, apart = compare([once], runs=[1, 2])[0], compare([copies], runs=[1, 2])[0]
    together = compare([copies], runs=[1, 2], clusters=clusters)[0]
    widths = [
        [
            estimate.interval.high - estimate.interval.low
            for estimate in (
                *group.results[0].rates.values(),
                group.pairs[0].difference,
                group.pairs[0].balanced,
            )
            if estimate.interval
        ]
        for group in (alone, apart, together)
    ]
    assert len(widths[0]) == 6
    assert all(one < other for one, other in zip(widths[1], widths[0], strict=True))
    assert all(one >= other * 0.99 for one, other in zip(widths[2], widths[0], strict=True))
    few = compare([copies], runs=[1, 2], clusters=clusters // 7)[0]
    assert few.untested == "fewer than 10 clusters of chats"


def test_one_chat_with_the_rare_human_answer_is_too_few_to_call_a_judge_better() -> None:
    human = [T] * 59 + [F]
    (pair,) = compare([answers(human, human, [F] * 20 + [T] * 39 + [F])], runs=[1, 2])[0].pairs
    assert (pair.more_right, pair.better) == (1, None)


@pytest.mark.heavy
def test_intervals_of_a_difference_of_balanced_accuracies_cover_the_true_difference() -> None:
    rng = np.random.default_rng(23)
    covered = [
        pair.balanced.interval is not None
        and pair.balanced.interval.low <= 0.1 <= pair.balanced.interval.high
        for _ in range(300)
        for pair in simulated(rng, rates=(0.9, 0.8), chats=80, criteria=4)[0].pairs
    ]
    assert np.mean(covered) > 0.92


@pytest.mark.heavy
def test_equal_judges_are_rarely_called_different() -> None:
    """Of 300 leagues of four equal judges at most about 5% name a better one."""
    rng = np.random.default_rng(17)
    named = sum(
        any(
            pair.better is not None
            for group in simulated(rng, rates=(0.85,) * 4, chats=60, criteria=6)
            for pair in group.pairs
        )
        for _ in range(300)
    )
    assert named <= 24  # 15 expected at most; more than 24 happens in one of a hundred tries


@pytest.mark.heavy
def test_intervals_of_a_difference_cover_the_true_difference() -> None:
    rng = np.random.default_rng(19)
    covered = 0
    for _ in range(600):
        difference = simulated(rng, rates=(0.9, 0.8), chats=60, criteria=6)[0].pairs[0].difference
        assert difference.interval
        covered += difference.interval.low <= 0.1 <= difference.interval.high
    assert 0.92 <= covered / 600 <= 0.98


# ---------- cost effectiveness ----------


def group_of(gains: list[float]) -> Group:
    """Judges, runs 0, 1, …: the first is right on half of 400 chats, each other on more by its gain."""
    limits = 0.5 + np.array(gains)[:, np.newaxis]
    right = (np.arange(400) + 0.5) / 400 < limits
    return compare([right_or_wrong(right, key="a")], runs=range(len(gains)))[0]


def test_an_additional_right_answer_costs_the_price_difference_divided_by_the_gain() -> None:
    costs = cost_effectiveness(group_of([0.0, 0.2, 0.4]), prices={0: 0.001, 1: 0.002, 2: 0.009})
    assert (costs.cheapest, [one.run for one in costs.better]) == (0, [1, 2])
    assert costs.better[0].per_right_answer == pytest.approx(0.001 / 0.2)
    assert costs.better[1].per_right_answer == pytest.approx(0.008 / 0.4)
    for one in costs.better:
        assert one.interval.low < one.per_right_answer < one.interval.high


def test_a_judge_without_a_price_is_named_and_not_guessed() -> None:
    costs = cost_effectiveness(group_of([0.0, 0.2]), prices={0: 0.001, 1: None})
    assert (costs.cheapest, costs.better, costs.unpriced) == (0, (), (1,))
    assert cost_effectiveness(group_of([0.0, 0.2]), prices={0: None, 1: None}).cheapest is None


def test_a_judge_that_is_not_better_has_no_cost_effectiveness() -> None:
    assert cost_effectiveness(group_of([0.0, 0.0]), prices={0: 0.001, 1: 0.002}).better == ()
