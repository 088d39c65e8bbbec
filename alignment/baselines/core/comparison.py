"""The judge compared with two baselines, on the same chats."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.baselines.core.bag_of_words import Codes, OutOfFold
from alignment.statistics.agreement import formulas
from alignment.statistics.design_effect import by_cluster, mean_share
from alignment.statistics.estimates import Estimate, Interval, undefined_reasons
from alignment.statistics.intervals import Pseudo, bootstrap_estimate, patterns, resample_chats
from alignment.statistics.macro_rates import ClassCounts, macro_rates

CHANCE = 0.5
NOTHING = "no chat with a human answer and a verdict of True or False"
# A chat by human answer (True first) and by which is right: both, only the judge, only the words, neither.
_KINDS = 8


class Finding(StrEnum):
    """Result of comparing two balanced accuracies."""

    BEATS = "beats"
    NOT_SHOWN = "not_shown"
    WORSE = "worse"


@dataclass(frozen=True)
class Rates:
    """Accuracy and balanced accuracy, in [0, 1], with intervals."""

    accuracy: Estimate
    balanced: Estimate


@dataclass(frozen=True)
class Comparison:
    """The comparison on one criterion.

    Parameters
    ----------
    key : of the criterion.
    n, human_true : number of chats with a human answer, a verdict and, if there is one, a prediction of the
        bag of words; and those of them with a human True.
    folds : of the bag of words; 0 without one.
    judge, words : rates on these chats.
    majority : the more frequent human answer, True if both are equally frequent; None without a chat.
    always : accuracy of always giving that answer. Its balanced accuracy is 0.50 by definition.
    over_majority, over_words : balanced accuracy of the judge minus that of the baseline, in [-1, 1].
    """

    key: str
    n: int
    human_true: int
    folds: int
    judge: Rates
    words: Rates
    majority: bool | None
    always: Estimate
    over_majority: Estimate
    over_words: Estimate

    def as_json(self) -> dict[str, Any]:
        """The stored document; `undefined` has the reason of each missing value, by path."""
        defined = self.over_majority.value is not None
        estimates = {
            "judge.accuracy": self.judge.accuracy,
            "judge.balanced_accuracy": self.judge.balanced,
            "majority.accuracy": self.always,
            "majority.difference": self.over_majority,
            "bag_of_words.accuracy": self.words.accuracy,
            "bag_of_words.balanced_accuracy": self.words.balanced,
            "bag_of_words.difference": self.over_words,
        }
        body: dict[str, Any] = {
            "key": self.key,
            "n": self.n,
            "human_true": self.human_true,
            "judge": {},
            "majority": {
                "answer": self.majority,
                "balanced_accuracy": CHANCE if defined else None,
                "finding": finding(self.over_majority),
            },
            "bag_of_words": {"folds": self.folds, "finding": finding(self.over_words)},
            "undefined": undefined_reasons(estimates),
        }
        for path, estimate in estimates.items():
            part, name = path.split(".")
            body[part][name] = estimate.as_json()
        return body


def finding(difference: Estimate) -> Finding | None:
    """Judge the 95% interval of a difference; None if the difference is undefined.

    Examples
    --------
    >>> finding(Estimate(0.2, Interval(0.1, 0.3))), finding(Estimate(0.2, Interval(-0.1, 0.4)))
    (<Finding.BEATS: 'beats'>, <Finding.NOT_SHOWN: 'not_shown'>)
    """
    if difference.value is None:
        return None
    if difference.interval is None or difference.interval.low <= 0 <= difference.interval.high:
        return Finding.NOT_SHOWN
    return Finding.BEATS if difference.value > 0 else Finding.WORSE


def compare(
    key: str,
    *,
    human: Codes,
    judge: Codes,
    words: OutOfFold,
    seed: int,
    clusters: NDArray[np.int64] | None = None,
) -> Comparison:
    """Compare judge, majority class and bag of words on the chats that all of them answered.

    Parameters
    ----------
    human, judge : human answers and verdicts, shape (chats,): 1 True, 0 False, -1 neither.
    words : predictions of the bag of words, of the same length.
    seed : of the bootstrap.
    clusters : number of each chat's cluster, shape (chats,); None if every chat is alone.

    Returns
    -------
    Comparison : values are undefined, with a reason, without such chats or without one class.

    Notes
    -----
    Balanced accuracy is used because accuracy favours the frequent answer: with 95% True, a judge that always
    answers True is right on 95%. Each chat counts once. Intervals: Wilson for accuracy; MOVER for balanced
    accuracy and its difference from 0.50; 2,000 resamples of chats for the difference from the bag of words,
    with half a pseudo-chat of each kind (docs/adr/0012). In simulations with 15 to 200 chats of each class
    and rates of 0.50 to 0.97 it covers 92 to 100%, without pseudo-chats 88 to 97%. The folds are not
    resampled. Clusters of chats count as units, as in `mean_share`.

    Examples
    --------
    >>> human = np.array([1, 0] * 20, dtype=np.int8)
    >>> always_true = OutOfFold(np.ones(40, dtype=np.int8), 5)
    >>> body = compare("polite", human=human, judge=human, words=always_true, seed=1).as_json()
    >>> body["bag_of_words"]["balanced_accuracy"]["value"], body["bag_of_words"]["finding"]
    (0.5, <Finding.BEATS: 'beats'>)
    """
    same = (human >= 0) & (judge >= 0) & ((words.answers >= 0) | (not words.folds))
    human, judge, answers = human[same], judge[same], words.answers[same]
    units = None if clusters is None else clusters[same]
    n, true = len(human), int((human == 1).sum())
    by_judge = _rates(human, judge, units)
    by_words = _rates(human, answers, units) if words.folds else _unlearned(words.reason)
    majority = 2 * true >= n if n else None
    return Comparison(
        key=key,
        n=n,
        human_true=true,
        folds=words.folds,
        judge=by_judge,
        words=by_words,
        majority=majority,
        always=_share(human == majority, units),
        over_majority=_over_chance(by_judge.balanced),
        over_words=_over_words(human, judge, answers, by_judge, by_words, seed=seed, units=units),
    )


def _share(right: NDArray[np.bool_], units: NDArray[np.int64] | None) -> Estimate:
    by_unit = by_cluster(right[np.newaxis], units)
    return mean_share(
        by_unit, by_cluster(np.ones((1, len(right)), dtype=bool), units), reason=NOTHING
    ).estimate


def _rates(human: Codes, answers: Codes, units: NDArray[np.int64] | None) -> Rates:
    right = human == answers
    true, false = (human == 1)[np.newaxis], (human == 0)[np.newaxis]
    rates = macro_rates(
        ClassCounts.of(true=true & right, false=false & right, clusters=units),
        ClassCounts.of(true=true, false=false, clusters=units),
        reason=NOTHING,
    )
    return Rates(rates["accuracy"], rates["balanced_accuracy"])


def _unlearned(reason: str) -> Rates:
    return Rates(Estimate(None, reason=reason), Estimate(None, reason=reason))


def _over_chance(balanced: Estimate) -> Estimate:
    """A balanced accuracy minus 0.50, that of a constant answer."""
    if balanced.value is None or balanced.interval is None:
        return balanced
    low, high = balanced.interval.low - CHANCE, balanced.interval.high - CHANCE
    return Estimate(balanced.value - CHANCE, Interval(low, high))


def _over_words(
    human: Codes,
    judge: Codes,
    answers: Codes,
    by_judge: Rates,
    by_words: Rates,
    *,
    seed: int,
    units: NDArray[np.int64] | None,
) -> Estimate:
    for rates in (by_words, by_judge):
        if rates.balanced.value is None:
            return Estimate(None, reason=rates.balanced.reason)
    kind = 4 * (human == 0) + 2 * (judge != human) + (answers != human)
    by_unit = patterns(by_cluster(np.eye(_KINDS, dtype=np.int64)[kind].T, units).T)
    size = len(kind) / max(1, int(by_unit.chats.sum()))
    pseudo = Pseudo(size * np.eye(_KINDS), np.full(_KINDS, 0.5))
    return bootstrap_estimate(
        formulas.scalar(_difference(np.bincount(kind, minlength=_KINDS).astype(np.float64))),
        _difference,
        resample_chats(by_unit.rows, by_unit.chats, seed=seed, pseudo=pseudo),
        reason=NOTHING,
    )


def _difference(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Difference of balanced accuracies from counts of chats by kind (..., 8); NaN without one class."""
    on_true, on_false = counts[..., :4], counts[..., 4:]
    shares = (formulas.ratio(side[..., 1] - side[..., 2], side.sum(axis=-1)) for side in (on_true, on_false))
    return sum(shares, start=np.zeros(counts.shape[:-1])) / 2
