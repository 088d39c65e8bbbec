"""Label needs of decisions, and expected labels of a sample."""

import numpy as np
import pytest

from alignment.label_planning.core import (
    AnswerCounts,
    MissingLabels,
    Sizes,
    expected_false,
    shares_of,
    smallest_sizes,
)
from alignment.statistics.agreement import Confusion
from alignment.statistics.label_needs import Decision, LabelCounts, Minimums, label_summary, needs

# decision: what is wanted of chats, True, False, random, with three raters, of these False
TABLE = {
    "first_look": {"chats": 30},
    "status": {"true": 30, "false": 30},
    "badge": {"chats": 100, "true": 30, "false": 30},
    "tnr_loss": {"false": 50},
    "gate_alone": {"chats": 100},
    "gate": {"chats": 200, "true": 30, "false": 30},
    "gate_fine": {"chats": 400, "false": 50},
    "single": {"chats": 300},
    "replace_rater": {"three_raters": 100, "three_raters_false": 15},
    "kappa": {"chats": 100},
    "production_rate": {"random": 200},
}


def wanted(counts: LabelCounts) -> dict[str, dict[str, int]]:
    return {
        need.decision.value: {part.asked.value: part.want for part in need.parts} for need in needs(counts)
    }


def need_of(decision: Decision, counts: LabelCounts) -> str:
    return next(need.sentence for need in needs(counts) if need.decision == decision)


def test_every_decision_asks_for_what_the_table_says() -> None:
    assert wanted(LabelCounts(true=10, false=10)) == TABLE


def test_with_mostly_true_labels_three_times_as_many_show_that_it_may_replace_a_rater() -> None:
    assert wanted(LabelCounts(true=86, false=14))["replace_rater"] == {
        "three_raters": 300,
        "three_raters_false": 45,
    }
    assert wanted(LabelCounts(true=85, false=15))["replace_rater"] == TABLE["replace_rater"]


@pytest.mark.parametrize(
    ("true", "false", "chats"), [(50, 50, 100), (70, 30, 100), (90, 10, 400), (10, 90, 400)]
)
def test_kappa_needs_more_where_one_answer_is_rare(true: int, false: int, chats: int) -> None:
    assert wanted(LabelCounts(true, false))["kappa"] == {"chats": chats}


def test_a_subjective_criterion_needs_nothing_for_decisions_it_cannot_block() -> None:
    found = {need.decision: need for need in needs(LabelCounts(true=5, false=5, tier="subjective"))}
    for decision in (
        Decision.TNR_LOSS,
        Decision.GATE_ALONE,
        Decision.GATE,
        Decision.GATE_FINE,
        Decision.SINGLE,
    ):
        assert (found[decision].applies, found[decision].met) == (False, False)
        assert found[decision].sentence == "not applicable: a subjective criterion never blocks"
    assert found[Decision.BADGE].applies


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (LabelCounts(90, 12), "label 18 more chats with answer False"),
        (LabelCounts(12, 90), "label 18 more chats with answer True"),
        (LabelCounts(30, 29), "label 41 more chats, at least 1 False"),
        (LabelCounts(30, 69), "label 1 more chat"),
        (
            LabelCounts(19, 4),
            "label 77 more chats, at least 11 True and 26 False",
        ),
        (LabelCounts(70, 30), "enough labels"),
    ],
)
def test_what_a_badge_misses_is_said_in_words(counts: LabelCounts, sentence: str) -> None:
    assert need_of(Decision.BADGE, counts) == sentence


def test_three_raters_and_chance_are_said_too() -> None:
    counts = LabelCounts(50, 50, three=40, three_false=3, random=50)
    assert need_of(Decision.REPLACE, counts) == ("label 60 more chats with three raters, at least 12 False")
    assert need_of(Decision.RATE, counts) == "label 150 more randomly sampled chats"


def test_a_status_misses_only_what_its_policy_asks() -> None:
    assert need_of(Decision.STATUS, LabelCounts(30, 30)) == "enough labels"
    assert need_of(Decision.STATUS, LabelCounts(30, 12)) == "label 18 more chats with answer False"
    assert need_of(Decision.STATUS, LabelCounts(28, 29)) == "label 3 more chats: 2 True and 1 False"
    strict = needs(LabelCounts(30, 30), Minimums(status_true=40, gate_alone=150))
    missing = {need.decision: need.missing_chats for need in strict}
    assert (missing[Decision.STATUS], missing[Decision.GATE_ALONE]) == (10, 90)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (LabelCounts(19, 4), "37 more for a status, 77 for ±6 points, 77 for the gate"),
        (LabelCounts(40, 12), "18 more for a status, 48 for ±6 points, 48 for the gate"),
        (LabelCounts(90, 12), "18 more for a status, 18 for ±6 points"),
        (LabelCounts(50, 40), "10 more for ±6 points, 10 for the gate"),
        (LabelCounts(50, 40, tier="subjective"), "10 more for ±6 points"),
        (LabelCounts(60, 40), ""),
    ],
)
def test_every_number_of_labels_is_named_with_its_decision(counts: LabelCounts, words: str) -> None:
    assert label_summary(needs(counts)) == words


# ---------- what a draw may bring ----------


def test_shares_are_shrunk_towards_half() -> None:
    shares = shares_of(Confusion(tp=60, fn=5, fp=2, tn=13))
    assert shares.judge_false.share == pytest.approx(14 / 20)
    assert shares.judge_true.share == pytest.approx(3 / 64)
    assert shares.no_verdict.share == pytest.approx(16 / 82)
    assert shares_of(Confusion(0, 0, 0, 0)).judge_false.share == 0.5


def test_a_range_is_wide_where_little_was_seen() -> None:
    little, much = (expected_false([(25, AnswerCounts(7 * times, 3 * times))]) for times in (1, 100))
    assert little.high - little.low > much.high - much.low
    assert much.low <= 18 <= much.high


def test_the_range_holds_in_nine_samples_of_ten() -> None:
    seen, chance = AnswerCounts(false=6, true=2), np.random.default_rng(1)
    expected = expected_false([(30, seen), (10, AnswerCounts())])
    rates = chance.beta(7, 3, 20_000), chance.beta(1, 1, 20_000)
    came = chance.binomial(30, rates[0]) + chance.binomial(10, rates[1])
    inside = np.mean((came >= expected.low) & (came <= expected.high))
    assert 0.9 <= inside < 0.95
    assert came.mean() == pytest.approx(expected.about, abs=0.1)


def test_an_empty_sample_brings_no_labels() -> None:
    assert expected_false([(0, AnswerCounts())]).words == "about 0 will be False"


def test_a_sample_is_large_enough_for_every_criterion_and_no_larger_than_there_are_chats() -> None:
    one, other = MissingLabels(18, 0, 18, 0.72, 0.1), MissingLabels(0, 20, 20, 0.3, 0.2)
    assert smallest_sizes([one], suspect=100, other=500) == Sizes(25, 7)
    # 25 suspect chats bring 17.5 of the 20 True answers of the other criterion.
    assert smallest_sizes([one, other], suspect=100, other=500) == Sizes(25, 7)
    assert smallest_sizes([one, other], suspect=100, other=3) == Sizes(25, 3)
    assert smallest_sizes([], suspect=100, other=500) == Sizes(0, 0)
