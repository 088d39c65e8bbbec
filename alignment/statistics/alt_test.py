"""Can the judge replace a rater? The alternative annotator test (alt-test), and a class-balanced version.

The alt-test passes a judge that always answers True when nearly all chats are True; the balanced gap does
not. Both are reported, the balanced one decides.
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
# Chats of each class on which judge and rater differ. From this number on, the normal limit of the bootstrap
# is more accurate than 2,000 resamples, whose time grows with the number of vote patterns.
MANY_CHATS = 50

FEW_RATERS = f"needs {MINIMUM_RATERS} raters with {MINIMUM_CHATS} chats each that other raters labelled too"
ONE_CLASS = "the other raters gave one answer only"


@dataclass(frozen=True)
class RaterCase:
    """The judge and one rater, each compared with all other raters of the same chats.

    Parameters
    ----------
    rater : column index of the rater.
    chats : number of chats with an answer of this rater, the judge and at least one other rater.
    advantage : share of those chats on which the judge is at least as close to the others as the rater is.
    p_value : one-sided t-test of "the rater's lead is at least epsilon".
    wins : this null hypothesis is rejected, with the false discovery rate controlled over all raters.
    gap : balanced agreement of the judge with the others minus that of the rater, in [-1, 1]. 90% interval by
        chat bootstrap, or its normal limit for many chats; its low end is a one-sided 95% bound.
    """

    rater: int
    chats: int
    advantage: float
    p_value: float
    wins: bool
    gap: Estimate

    @property
    def beaten(self) -> bool:
        """Whether the gap is above -10 points with 95% confidence."""
        return self.gap.interval is not None and self.gap.interval.low > -MARGIN


@dataclass(frozen=True)
class AltTest:
    """One case per rater with enough chats; none, and a reason, if there are too few such raters."""

    cases: tuple[RaterCase, ...]
    reason: str = ""

    @property
    def winning_rate(self) -> float | None:
        """Share of raters against whom the judge wins the alt-test, in [0, 1]. None without a case."""
        return _share([case.wins for case in self.cases])

    @property
    def advantage(self) -> float | None:
        """Mean of the cases' `advantage`, in [0, 1]. None without a case."""
        return float(np.mean([case.advantage for case in self.cases])) if self.cases else None

    @property
    def alt_test(self) -> bool | None:
        """Result of the published test: the judge wins against half of the raters. None without a case."""
        return None if self.winning_rate is None else self.winning_rate >= 0.5

    @property
    def balanced(self) -> bool | None:
        """Result that decides: half of the raters are beaten by the balanced gap. None without a case."""
        share = _share([case.beaten for case in self.cases])
        return None if share is None else share >= 0.5


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def alt_test(
    labels: NDArray[np.integer],
    judge: NDArray[np.integer],
    *,
    seed: int,
    epsilon: float = EPSILON,
    resamples: int = RESAMPLES,
) -> AltTest:
    """Compare the judge with each rater, both against all other raters.

    Parameters
    ----------
    labels : shape (chats, raters): 1 True, 0 False, -1 no such answer.
    judge : shape (chats,), the same codes.
    seed, resamples : of the chat bootstrap.
    epsilon : lead that a rater may have because the judge is cheaper, as a share of chats: 0.2 for experts,
        0.15 for skilled and 0.1 for any other raters.

    Returns
    -------
    AltTest : without cases, and with a reason, for fewer than 3 raters with 30 comparable chats each.

    Notes
    -----
    Alt-test: Calderon, Reichart & Dror (2025), arXiv 2501.10970. For chat i and rater j, d = [rater at least
    as close to the others as the judge] - [judge at least as close]; one-sided t-test of mean d < epsilon;
    Benjamini & Yekutieli (2001) over raters at 0.05. If all d are equal, the t-test is undefined and their
    mean decides.
    Balanced gap: BA(judge, others) - BA(rater, others), where BA is the mean of two shares: matched True
    answers of the others, and matched False answers.

    Examples
    --------
    >>> labels = np.tile([[1, 1, 1], [0, 0, 0]], (50, 1))
    >>> result = alt_test(labels, np.ones(100, dtype=int), seed=1)
    >>> result.alt_test, result.balanced
    (False, False)
    """
    answers = _answers_by_rater(labels, judge)
    if len(answers) < MINIMUM_RATERS:
        return AltTest((), FEW_RATERS)
    p_values = [_p_value(one, epsilon) for one in answers]
    wins = [corrected <= FALSE_DISCOVERIES for corrected in benjamini_yekutieli(p_values)]
    gaps = [_gap(one.rows, seed=seed + one.rater, resamples=resamples) for one in answers]
    return AltTest(tuple(map(_case, answers, p_values, wins, gaps)))


def _case(answers: "_Answers", p_value: float, wins: bool, gap: Estimate) -> RaterCase:
    chats = answers.rows.shape[0]
    return RaterCase(answers.rater, chats, answers.advantage, p_value, wins=wins, gap=gap)


@dataclass(frozen=True)
class _Answers:
    """By chat: True and False answers of the others, verdict, the rater's answer; rows (chats, 4)."""

    rater: int
    rows: NDArray[np.int64]

    @property
    def judge_closer(self) -> NDArray[np.int64]:
        """By chat: others who agree with the judge, minus others who agree with the rater."""
        true, false, judge, rater = self.rows.T
        closer: NDArray[np.int64] = (judge - rater) * (true - false)
        return closer

    @property
    def advantage(self) -> float:
        return float(np.mean(self.judge_closer >= 0))


def _answers_by_rater(labels: NDArray[np.integer], judge: NDArray[np.integer]) -> list[_Answers]:
    """Answers of each rater with enough chats that the judge and other raters answered too."""
    present = labels >= 0
    comparable = (judge >= 0)[:, np.newaxis] & present & (present.sum(axis=1, keepdims=True) > 1)
    raters = np.flatnonzero(comparable.sum(axis=0) >= MINIMUM_CHATS)
    votes = np.column_stack([(labels == 1).sum(axis=1), (labels == 0).sum(axis=1)])
    return [
        _answers_of(votes[of], judge[of], labels[of, j], int(j)) for j in raters for of in [comparable[:, j]]
    ]


def _answers_of(
    votes: NDArray[np.int64], judge: NDArray[np.integer], own: NDArray[np.integer], rater: int
) -> _Answers:
    """Subtract the rater's own answer from the True and False votes of their chats, shape (chats, 2)."""
    true, false = votes[:, 0] - (own == 1), votes[:, 1] - (own == 0)
    return _Answers(rater, np.column_stack([true, false, judge, own]).astype(np.int64))


def _p_value(answers: _Answers, epsilon: float) -> float:
    closer = answers.judge_closer
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
    distinct = patterns(rows)
    return bootstrap_estimate(
        value,
        _gap_of_sums,
        resample_chats(_parts(distinct.rows), distinct.chats, seed=seed, resamples=resamples),
        reason=ONE_CLASS,
        confidence=GAP_CONFIDENCE,
    )


def _parts(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Addends of the gap by chat: True and False votes, and how many more of each the judge matches."""
    true, false, judge, rater = rows.T
    ahead = judge - rater
    return np.column_stack([true, false, true * ahead, -false * ahead]).astype(np.float64)


def _gap_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The gap from summed parts (..., 4); NaN if one of the two classes is missing."""
    on_true, on_false = (formulas.ratio(sums[..., at + 2], sums[..., at]) for at in (0, 1))
    return (on_true + on_false) / 2


def _limit(value: float, parts: NDArray[np.float64]) -> Estimate:
    """Normal limit of the bootstrap: the gap's standard error from the influence of each chat."""
    votes, ahead = parts[:, :2], parts[:, 2:]
    moved = (ahead - votes * (ahead.sum(axis=0) / votes.sum(axis=0))) / votes.sum(axis=0) / 2
    margin = normal_quantile(GAP_CONFIDENCE) * float(np.linalg.norm(moved.sum(axis=1)))
    return Estimate(value, Interval(value - margin, value + margin))
