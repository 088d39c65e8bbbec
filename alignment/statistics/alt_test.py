"""May the judge stand in for a rater? The alternative-annotator test, and the same question by class.

The alt-test passes a judge that always says True where nearly all chats are True; the balanced gap does not.
Both are shown, the balanced one decides.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from alignment.statistics.agreement import formulas
from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import (
    RESAMPLES,
    bootstrap_estimate,
    normal_quantile,
    patterns,
    resample_chats,
)
from alignment.statistics.paired_tests import benjamini_yekutieli

MINIMUM_RATERS = 3
MINIMUM_CHATS = 30
EPSILON = 0.15
FALSE_DISCOVERIES = 0.05
MARGIN = 0.10
GAP_CONFIDENCE = 0.90
# On so many chats of each class that tell judge and rater apart, the bootstrap's normal limit lies closer to
# what 2,000 resamples converge to than they do, whose drawing takes as long as there are patterns of votes.
MANY_CHATS = 50

FEW_RATERS = f"needs {MINIMUM_RATERS} people who each labelled {MINIMUM_CHATS} chats that others labelled too"
ONE_CLASS = "the others gave one answer only"


@dataclass(frozen=True)
class RaterCase:
    """The judge beside one rater, each compared with all other raters of the same chats.

    Parameters
    ----------
    rater : column of the rater.
    chats : chats with this rater's answer, the judge's and at least one other rater's.
    advantage : share of those chats on which the judge is at least as close to the others as the rater is.
    p_value : one-sided t-test that the rater's lead is smaller than epsilon.
    wins : the test is rejected with false discoveries controlled over all raters.
    gap : balanced agreement of the judge with the others minus the rater's; 90% chat bootstrap, its normal
        limit where there are many chats, so that its low end is a one-sided bound of 95%.
    """

    rater: int
    chats: int
    advantage: float
    p_value: float
    wins: bool
    gap: Estimate

    @property
    def beaten(self) -> bool:
        """The judge is at most ten points below this rater, in both classes together."""
        return self.gap.interval is not None and self.gap.interval.low > -MARGIN


@dataclass(frozen=True)
class Replacement:
    """The cases of all raters with enough chats; empty, with a reason, where these are too few."""

    cases: tuple[RaterCase, ...]
    reason: str = ""

    @property
    def winning_rate(self) -> float | None:
        """Share of raters against whom the alt-test is won. None without a case."""
        return _share([case.wins for case in self.cases])

    @property
    def advantage(self) -> float | None:
        """Mean over raters of their `advantage`. None without a case."""
        return float(np.mean([case.advantage for case in self.cases])) if self.cases else None

    @property
    def alt_test(self) -> bool | None:
        """The published test: at least half of the raters. None without a case."""
        return None if self.winning_rate is None else self.winning_rate >= 0.5

    @property
    def balanced(self) -> bool | None:
        """What decides: at least half of the raters beaten by the balanced gap. None without a case."""
        share = _share([case.beaten for case in self.cases])
        return None if share is None else share >= 0.5


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def replacement(
    labels: NDArray[np.integer],
    judge: NDArray[np.integer],
    *,
    seed: int,
    epsilon: float = EPSILON,
    resamples: int = RESAMPLES,
) -> Replacement:
    """Compare the judge with each rater, both against all other raters.

    Parameters
    ----------
    labels : shape (chats, raters): 1 True, 0 False, -1 no such answer.
    judge : shape (chats,), the same codes.
    seed, resamples : of the chat bootstrap.
    epsilon : how much closer to the others a rater may be because the judge is cheaper: 0.2 for experts, 0.15
        for skilled, 0.1 for any other raters.

    Returns
    -------
    Replacement

    Notes
    -----
    Alt-test: Calderon, Reichart & Dror (2025), arXiv 2501.10970: for chat i and rater j, d = [rater at least
    as close to the others as the judge] - [judge at least as close], one-sided t-test of mean d < epsilon,
    Benjamini & Yekutieli (2001) over raters at 0.05. Where all d are equal the t-test is undefined: their
    mean decides.
    Balanced gap: BA(judge, others) - BA(rater, others), BA the mean of the shares of the others' True and of
    their False answers that are matched.

    Examples
    --------
    >>> people = np.tile([[1, 1, 1], [0, 0, 0]], (50, 1))
    >>> found = replacement(people, np.ones(100, dtype=int), seed=1)
    >>> found.alt_test, found.balanced
    (False, False)
    """
    sides = _every_side(labels, judge)
    if len(sides) < MINIMUM_RATERS:
        return Replacement((), FEW_RATERS)
    p_values = [_p_value(side, epsilon) for side in sides]
    tests = zip(sides, p_values, benjamini_yekutieli(p_values), strict=True)
    return Replacement(
        tuple(
            RaterCase(
                rater=side.rater,
                chats=side.rows.shape[0],
                advantage=side.advantage,
                p_value=p_value,
                wins=corrected <= FALSE_DISCOVERIES,
                gap=_gap(side.rows, seed=seed + side.rater, resamples=resamples),
            )
            for side, p_value, corrected in tests
        )
    )


@dataclass(frozen=True)
class _Sides:
    """By chat: the others' True and False answers, the judge's answer, the rater's; shape (chats, 4)."""

    rater: int
    rows: NDArray[np.int64]

    @property
    def judge_closer(self) -> NDArray[np.int64]:
        """By chat, how many more of the others agree with the judge than with the rater."""
        true, false, judge, rater = self.rows.T
        closer: NDArray[np.int64] = (judge - rater) * (true - false)
        return closer

    @property
    def advantage(self) -> float:
        return float(np.mean(self.judge_closer >= 0))


def _every_side(labels: NDArray[np.integer], judge: NDArray[np.integer]) -> list[_Sides]:
    """Of each rater with enough chats that the judge and others answered too."""
    present = labels >= 0
    comparable = (judge >= 0)[:, np.newaxis] & present & (present.sum(axis=1, keepdims=True) > 1)
    raters = np.flatnonzero(comparable.sum(axis=0) >= MINIMUM_CHATS)
    votes = np.column_stack([(labels == 1).sum(axis=1), (labels == 0).sum(axis=1)])
    return [_sides(votes[of], judge[of], labels[of, j], int(j)) for j in raters for of in [comparable[:, j]]]


def _sides(
    votes: NDArray[np.int64], judge: NDArray[np.integer], own: NDArray[np.integer], rater: int
) -> _Sides:
    """The rater's own answer taken out of the True and False votes of their chats, shape (chats, 2)."""
    true, false = votes[:, 0] - (own == 1), votes[:, 1] - (own == 0)
    return _Sides(rater, np.column_stack([true, false, judge, own]).astype(np.int64))


def _p_value(side: _Sides, epsilon: float) -> float:
    closer = side.judge_closer
    leads = (closer <= 0).astype(np.float64) - (closer >= 0)
    if (leads == leads[0]).all():
        return 0.0 if leads[0] < epsilon else 1.0
    error = leads.std(ddof=1) / math.sqrt(leads.size)
    return float(stdtr(leads.size - 1, (leads.mean() - epsilon) / error))


def _gap(rows: NDArray[np.int64], *, seed: int, resamples: int) -> Estimate:
    parts = _parts(rows)
    value = formulas.scalar(_gap_of_sums(parts.sum(axis=0)))
    if value is not None and np.count_nonzero(parts[:, 2:], axis=0).min() >= MANY_CHATS:
        return _limit(value, parts)
    found = patterns(rows)
    return bootstrap_estimate(
        value,
        _gap_of_sums,
        resample_chats(_parts(found.rows), found.chats, seed=seed, resamples=resamples),
        reason=ONE_CLASS,
        confidence=GAP_CONFIDENCE,
    )


def _parts(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """By chat what the gap sums up: True and False votes, and how many more of each the judge matches."""
    true, false, judge, rater = rows.T
    ahead = judge - rater
    return np.column_stack([true, false, true * ahead, -false * ahead]).astype(np.float64)


def _gap_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """From summed parts (..., 4) to the gap; NaN without one of the two classes."""
    on_true, on_false = (formulas.ratio(sums[..., at + 2], sums[..., at]) for at in (0, 1))
    return (on_true + on_false) / 2


def _limit(value: float, parts: NDArray[np.float64]) -> Estimate:
    """What the bootstrap converges to: the gap's error from how far each chat alone moves it."""
    votes, ahead = parts[:, :2], parts[:, 2:]
    moved = (ahead - votes * (ahead.sum(axis=0) / votes.sum(axis=0))) / votes.sum(axis=0) / 2
    margin = normal_quantile(GAP_CONFIDENCE) * float(np.linalg.norm(moved.sum(axis=1)))
    return Estimate(value, Interval(value - margin, value + margin))
