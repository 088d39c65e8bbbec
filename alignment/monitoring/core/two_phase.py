"""Prediction-powered rates (PPI++) in two phases: chats are sampled for the judge, some for raters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment.monitoring.core.weighted_rates import StratumSums

# Labels with the spread of all human answers that are added for the interval: few labels show few of the
# judge's rare errors.
PRIOR_LABELS = 20

Floats = NDArray[np.float64]
Groups = NDArray[np.int64]


@dataclass(frozen=True)
class AuditLabels:
    """Human labels and verdicts of the chats that were sampled for labels from the judged ones.

    Parameters
    ----------
    weights : inverse probability of each chat to be judged, N / n of its stratum; shape (labelled,). The
        chats are among the n.
    groups : number of each chat's group, 0, 1, …; same shape. Within a group the labelled chats are a random
        part of the judged ones: a night for a random audit, with oversampling a night's suspects or others.
    group_sizes : judged chats of the frame in each group, shape (groups,).
    human_answers, human_passes : a and y of each chat by its raters, as in `StratumSums`; shape (labelled,).
    judge_answers, judge_passes : a and y by the judge, with 0 for no verdict as in `StratumSums`.
    """

    weights: Floats
    groups: Groups
    group_sizes: Groups
    human_answers: Floats
    human_passes: Floats
    judge_answers: Floats
    judge_passes: Floats


@dataclass(frozen=True)
class TwoPhases:
    """Weighted sums of a judged sample and of the labelled chats among it, for PPI++ (see `ppi_rate`).

    size : chats of the frame. judge_passes, judge_answers : F and B. label_weights : inverse probability to
    be judged and labelled, shape (labelled,). labelled, judged : chats of each group, shape (groups,).
    """

    audit: AuditLabels
    size: float
    judge_passes: float
    judge_answers: float
    label_weights: Floats
    labelled: Floats
    judged: Floats

    @classmethod
    def of(cls, strata: Sequence[StratumSums], audit: AuditLabels) -> "TwoPhases":
        """Sum up. Each group with judged chats needs a label, each stratum with chats a judged one."""
        size = float(sum(one.size for one in strata))
        passes = sum(one.size / one.sampled * one.passes for one in strata if one.sampled)
        answers = sum(one.size / one.sampled * one.answers for one in strata if one.sampled)
        labelled = np.bincount(audit.groups, minlength=len(audit.group_sizes)).astype(np.float64)
        judged = audit.group_sizes.astype(np.float64)
        weights = audit.weights * (judged / np.maximum(labelled, 1))[audit.groups]
        return cls(audit, size, passes / size, answers / size, weights, labelled, judged)

    def mean(self, values: Floats) -> float:
        """Weighted mean over the labelled chats."""
        return float((self.label_weights * values).sum() / self.label_weights.sum())

    def answers(self, weight: float) -> float:
        """Applicable answers a chat."""
        human, judge = self.mean(self.audit.human_answers), self.mean(self.audit.judge_answers)
        return human + weight * (self.judge_answers - judge)

    def rate(self, weight: float) -> float:
        """The rate with this weight of the verdicts."""
        human, judge = self.mean(self.audit.human_passes), self.mean(self.audit.judge_passes)
        return (human + weight * (self.judge_passes - judge)) / self.answers(weight)

    def human(self, rate: float) -> Floats:
        """Contribution of each label to the error of the rate, centred, weighted to the judged chats."""
        return self._centred(self.audit.human_passes - rate * self.audit.human_answers)

    def judge(self, rate: float) -> Floats:
        """The same for the verdicts of the labelled chats."""
        return self._centred(self.audit.judge_passes - rate * self.audit.judge_answers)

    def _centred(self, values: Floats) -> Floats:
        centred: Floats = self.audit.weights * (values - self.mean(values)) / self.size
        return centred

    def within(self, first: Floats, second: Floats) -> Floats:
        """Covariance within each group; around 0 where it has a single label."""
        count, groups, m = len(self.labelled), self.audit.groups, np.maximum(self.labelled, 1)
        products = np.bincount(groups, first * second, count)
        means = np.bincount(groups, first, count) * np.bincount(groups, second, count) / m
        covariance: Floats = np.where(m > 1, products - means, products) / np.maximum(m - 1, 1)
        return covariance

    def second_phase(self, within: Floats) -> float:
        """Variance of a total over the judged chats, estimated from the labelled ones of each group."""
        m = np.maximum(self.labelled, 1)
        return float((self.judged**2 * (1 / m - 1 / np.maximum(self.judged, m)) * within).sum())

    def best_weight(self) -> float:
        """Lambda of least variance, at the rate of the labels alone; within [0, 1]."""
        rate = self.rate(0.0)
        judge, human = self.judge(rate), self.human(rate)
        spread = self.second_phase(self.within(judge, judge))
        together = self.second_phase(self.within(human, judge))
        best = min(1.0, max(0.0, together / spread)) if spread > 0 else 0.0
        return best if self.answers(best) > 0 else 0.0

    def variance(self, weight: float, rate: float, *, prior: int = 0) -> float:
        """Of the rate: the judged sample's, and the labelled chats' within it.

        `prior` : chats that are added to the labels, with the spread of the human answers alone.
        """
        human, n = self.human(rate), self.audit.groups.size
        judged = (self.judged / np.maximum(self.labelled, 1))[self.audit.groups]
        squares = human**2 * judged
        first = float(((1 - 1 / self.audit.weights) * squares).sum()) * n / (n - 1)
        rest = human - weight * self.judge(rate)
        spread = (n * self.within(rest, rest) + prior * squares.sum() / judged.sum()) / (n + prior)
        return (first + self.second_phase(spread)) / self.answers(weight) ** 2

    @property
    def kish(self) -> float:
        """Effective number of labels if they were independent."""
        weights = self.label_weights * self.audit.human_answers
        return float(weights.sum() ** 2 / (weights**2).sum())

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the variance: labels minus groups."""
        return max(1.0, float(self.audit.groups.size - np.count_nonzero(self.labelled)))
