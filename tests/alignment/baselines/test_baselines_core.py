"""The bag-of-words baseline, and the comparison of a judge with it."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from alignment.baselines.core import (
    Codes,
    Comparison,
    Finding,
    Labelled,
    OutOfFold,
    compare,
    finding,
    out_of_fold,
    sampled_chats,
)
from alignment.statistics.estimates import Estimate

SEED = 7
WORDS = ["order", "parcel", "late", "refund", "invoice", "colour", "size", "price", "shop", "return", "card"]


def answers(n: int, *, share: float = 0.3, seed: int = 1) -> Codes:
    return (np.random.default_rng(seed).random(n) < share).astype(np.int8)


def chats(n: int, *, seed: int = 2) -> list[str]:
    """Texts that tell nothing."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=30)) for _ in range(n)]


def learned(texts: list[str], human: Codes, alike: list[int] | None = None, *, seed: int = SEED) -> OutOfFold:
    labelled = Labelled(texts, alike or list(range(len(texts))), {"polite": human})
    return out_of_fold(labelled, seed=seed)["polite"]


def balanced(said: Codes, human: Codes) -> float:
    return float(((said == 1)[human == 1].mean() + (said == 0)[human == 0].mean()) / 2)


def against(human: Codes, judge: Codes, words: OutOfFold | None = None) -> Comparison:
    guess = OutOfFold(answers(len(human), share=0.5, seed=9), 5)
    return compare("polite", human=human, judge=judge, words=words or guess, seed=SEED)


def wrong_on(human: Codes, share: float) -> Codes:
    """A judge that errs on this share of the chats of each answer."""
    judge = human.copy()
    for side in (0, 1):
        places = np.flatnonzero(human == side)
        judge[places[: round(share * len(places))]] = 1 - side
    return judge


# ---------- the bag of words ----------


def test_a_word_that_decides_is_found() -> None:
    human = answers(200)
    texts = [text + (" apologised" if one else "") for text, one in zip(chats(200), human, strict=True)]
    assert balanced(learned(texts, human).answers, human) > 0.9


def test_labels_at_random_are_answered_at_random() -> None:
    found = [
        balanced(learned(chats(300), one).answers, one) for one in (answers(300, seed=n) for n in range(4))
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=0.06)


def test_near_duplicates_are_in_one_fold_and_disclose_nothing() -> None:
    human, texts = answers(100, share=0.5), [f"order{n} name{n} street{n}" for n in range(100)]
    copies, labels = texts * 4, np.tile(human, 4)
    apart, together = learned(copies, labels), learned(copies, labels, [*range(100)] * 4)
    assert balanced(apart.answers, labels) > 0.9
    assert balanced(together.answers, labels) < 0.6


def test_the_same_seed_gives_the_same_answers_and_another_seed_other_folds() -> None:
    human, texts = answers(120), chats(120)
    first, again, other = (learned(texts, human, seed=seed) for seed in (1, 1, 2))
    assert (first.answers == again.answers).all()
    assert (first.answers != other.answers).any()


def test_a_chat_without_a_human_answer_gets_none() -> None:
    human = answers(80)
    human[::4] = -1
    found = learned(chats(80), human)
    assert ((found.answers >= 0) == (human >= 0)).all()


@pytest.mark.parametrize(("false", "folds"), [(2, 2), (4, 4), (5, 5), (30, 5)])
def test_fewer_of_a_class_are_fewer_folds(false: int, folds: int) -> None:
    human = np.array([0] * false + [1] * 40, dtype=np.int8)
    assert learned(chats(len(human)), human).folds == folds


@pytest.mark.parametrize(
    ("human", "alike", "reason"),
    [
        ([1] * 20, None, "needs 2 chats with answer False, has 0"),
        ([1] * 20 + [0], None, "needs 2 chats with answer False, has 1"),
        ([0] * 20, None, "needs 2 chats with answer True, has 0"),
        (
            [0] * 20 + [1, 1],
            [*range(20), 99, 99],
            "needs 2 chats with answer True that are not near-duplicates, has 2",
        ),
    ],
)
def test_too_few_of_a_class_are_no_baseline_and_it_says_why(
    human: list[int], alike: list[int] | None, reason: str
) -> None:
    found = learned(chats(len(human)), np.array(human, dtype=np.int8), alike)
    assert (found.folds, found.reason) == (0, reason)
    assert (found.answers == -1).all()


def test_without_a_chat_there_is_no_baseline_and_it_says_why() -> None:
    nobody = np.empty(0, dtype=np.int8)
    found = out_of_fold(Labelled([], [], {"polite": nobody}), seed=1)["polite"]
    assert (found.folds, found.answers.size) == (0, 0)
    assert found.reason == "needs 2 chats with answer True, has 0"


def test_chats_without_a_word_are_answered_too() -> None:
    human = answers(60)
    texts = ["" if n % 2 else text for n, text in enumerate(chats(60))]
    assert (learned(texts, human).answers >= 0).all()
    assert (learned(["…"] * 60, human).answers >= 0).all()


def test_it_says_before_each_criterion_that_it_goes_on() -> None:
    beats: list[str] = []
    human = {key: answers(40, share=0.5) for key in ("polite", "fair", "clear")}
    out_of_fold(Labelled(chats(40), range(40), human), seed=SEED, beat=lambda: beats.append("on"))
    assert len(beats) == 3


# ---------- which chats ----------


def test_a_sample_of_many_chats_keeps_the_shares_of_every_criterion() -> None:
    criteria = [answers(20_000, share=share, seed=n) for n, share in enumerate((0.01, 0.1, 0.5))]
    places = sampled_chats(criteria, seed=SEED, most=2_000)
    assert len(set(places.tolist())) == 2_000
    for one, tolerance in zip(criteria, (0.0005, 0.005, 0.02), strict=True):
        assert one[places].mean() == pytest.approx(one.mean(), abs=tolerance)


def test_chats_that_nobody_answered_are_not_sampled() -> None:
    human = answers(100)
    human[::2] = -1
    assert sampled_chats([human], seed=SEED).tolist() == list(range(1, 100, 2))
    assert (human[sampled_chats([human], seed=SEED, most=20)] >= 0).all()


def test_the_sample_is_repeated_by_its_seed() -> None:
    human = [answers(5_000)]
    first, again, other = (sampled_chats(human, seed=seed, most=500).tolist() for seed in (1, 1, 2))
    assert first == again != other


# ---------- the judge beside it ----------


def test_a_constant_judge_beats_nobody_however_accurate_it_looks() -> None:
    human = answers(200, share=0.95)
    found = against(human, np.ones(200, dtype=np.int8)).as_json()
    assert found["judge"]["accuracy"]["value"] > 0.9
    assert found["judge"]["accuracy"] == found["majority"]["accuracy"]
    assert found["judge"]["balanced_accuracy"]["value"] == found["majority"]["balanced_accuracy"] == 0.5
    assert found["majority"]["answer"] is True
    assert (found["majority"]["finding"], found["bag_of_words"]["finding"]) == ("not_shown", "not_shown")


def test_a_good_judge_beats_both() -> None:
    human = answers(200)
    found = against(human, wrong_on(human, 0.1)).as_json()
    assert (found["majority"]["finding"], found["bag_of_words"]["finding"]) == ("beats", "beats")
    assert found["majority"]["difference"]["value"] == pytest.approx(0.4, abs=0.01)


def test_an_inverted_judge_is_worse_than_both() -> None:
    human = answers(200)
    found = against(human, 1 - human).as_json()
    assert (found["majority"]["finding"], found["bag_of_words"]["finding"]) == ("worse", "worse")


def test_a_judge_that_answers_like_the_words_is_not_shown_to_beat_them() -> None:
    human = answers(200)
    said = wrong_on(human, 0.2)
    found = against(human, said, OutOfFold(said, 5))
    assert found.over_words.value == 0
    assert found.over_words.interval is not None
    assert found.over_words.interval.low < 0 < found.over_words.interval.high
    assert finding(found.over_words) is Finding.NOT_SHOWN
    assert finding(found.over_majority) is Finding.BEATS


def test_only_chats_that_all_three_answered_are_compared() -> None:
    human, judge = answers(100, share=0.5), answers(100, share=0.5)
    judge[:10] = -1
    words = answers(100, share=0.5, seed=4)
    words[20:30] = -1
    human[90:] = -1
    assert against(human, judge, OutOfFold(words, 5)).n == 70


def test_the_difference_is_that_of_the_balanced_accuracies_and_lies_in_its_interval() -> None:
    human = answers(150)
    judge, words = wrong_on(human, 0.2), wrong_on(human[::-1], 0.4)[::-1]
    found = against(human, judge, OutOfFold(words, 5)).as_json()
    difference = found["bag_of_words"]["difference"]
    assert difference["value"] == pytest.approx(balanced(judge, human) - balanced(words, human))
    assert difference["low"] < difference["value"] < difference["high"]


def test_raters_who_gave_one_answer_leave_nothing_to_compare_and_the_reason_is_given() -> None:
    human = np.ones(50, dtype=np.int8)
    found = against(human, human, learned(chats(50), human)).as_json()
    assert (found["majority"]["finding"], found["bag_of_words"]["finding"]) == (None, None)
    assert found["majority"]["accuracy"]["value"] == 1
    assert found["undefined"]["majority.difference"] == "no chat with a human False"
    assert "needs 2 chats" in found["undefined"]["bag_of_words.difference"]


def test_nine_chats_show_nothing_of_the_words() -> None:
    human = np.array([1, 0, 1, 0, 1, 0, 1, 0, 1], dtype=np.int8)
    found = against(human, human, OutOfFold(1 - human, 2)).as_json()
    assert found["bag_of_words"]["difference"] == {"value": 1.0, "low": None, "high": None}
    assert found["bag_of_words"]["finding"] == "not_shown"
    assert "too few chats" in found["undefined"]["bag_of_words.difference.interval"]


def test_without_a_chat_every_figure_is_undefined_with_its_reason() -> None:
    none = np.full(5, -1, dtype=np.int8)
    found = against(none, none, OutOfFold(none, 0, "needs 2 chats")).as_json()
    assert (found["n"], found["majority"]["answer"]) == (0, None)
    assert set(found["undefined"]) == {
        "judge.accuracy",
        "judge.balanced_accuracy",
        "majority.accuracy",
        "majority.difference",
        "bag_of_words.accuracy",
        "bag_of_words.balanced_accuracy",
        "bag_of_words.difference",
    }


@pytest.mark.parametrize(("judged", "said"), [(0.9, 0.6), (0.8, 0.8)])
def test_the_interval_of_the_difference_holds_the_planted_one(judged: float, said: float) -> None:
    rng = np.random.default_rng(11)
    human = np.repeat([1, 0], [30, 60]).astype(np.int8)

    def planted(rate: float) -> Codes:
        right = rng.random(len(human)) < rate
        return np.where(right, human, 1 - human).astype(np.int8)

    simulated: list[Callable[[float], Codes]] = [planted] * 200
    found = [against(human, draw(judged), OutOfFold(draw(said), 5)).over_words.interval for draw in simulated]
    covered = np.mean([one is not None and one.low <= judged - said <= one.high for one in found])
    assert 0.9 <= covered <= 1


def test_copies_of_chats_in_one_cluster_know_no_more_than_one_of_each() -> None:
    human = answers(60, share=0.5)
    said, guess = wrong_on(human, 0.1), OutOfFold(answers(60, share=0.5, seed=9), 5)

    def figures(copies: int, clusters: NDArray[np.int64] | None = None) -> list[Estimate]:
        words = OutOfFold(np.tile(guess.answers, copies), 5)
        people, judge = (np.tile(codes, copies) for codes in (human, said))
        found = compare("polite", human=people, judge=judge, words=words, seed=SEED, clusters=clusters)
        return [found.judge.accuracy, found.always, found.over_majority, found.over_words]

    once, apart, together = figures(1), figures(4), figures(4, np.tile(np.arange(60), 4))
    for one, many, grouped in zip(once, apart, together, strict=True):
        assert one.interval
        assert many.interval
        assert grouped.interval
        width = one.interval.high - one.interval.low
        assert many.interval.high - many.interval.low < 0.6 * width
        assert 0.9 * width < grouped.interval.high - grouped.interval.low < 1.2 * width
