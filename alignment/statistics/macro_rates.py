"""Rates of judges averaged over criteria, so that criteria of opposite base rates are never added up."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment.statistics.design_effect import (
    MeanShare,
    balanced,
    by_cluster,
    mean_difference,
    mean_share,
)
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import MINIMUM_CHATS

NO_HUMAN_TRUE = "no chat with a human True"
NO_HUMAN_FALSE = "no chat with a human False"
NO_BOTH_CLASSES = "no criterion with a human True and a human False"
FEW_CHATS = f"fewer than {MINIMUM_CHATS} chats"
FEW_CLUSTERS = f"fewer than {MINIMUM_CHATS} clusters of chats"

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ClassCounts:
    """Answers by criterion and unit (chat, or cluster of chats): human True and human False.

    Parameters
    ----------
    true, false : compared answers with this human answer, shape (criteria, units).
    """

    true: Counts
    false: Counts

    @classmethod
    def of(cls, *, true: Flags, false: Flags, clusters: NDArray[np.int64] | None) -> "ClassCounts":
        """Count flags of shape (criteria, chats) by cluster; None leaves each chat alone."""
        return cls(by_cluster(true, clusters), by_cluster(false, clusters))

    @property
    def total(self) -> Counts:
        """All answers by unit, as one stratum: shape (1, units)."""
        total: Counts = (self.true + self.false).sum(axis=0, keepdims=True)
        return total

    @property
    def both(self) -> Flags:
        """Whether a criterion has a human True and a human False, shape (criteria,)."""
        return np.logical_and(self.true.any(axis=1), self.false.any(axis=1))

    def within(self, criteria: Flags) -> "ClassCounts":
        """The counts of these criteria alone."""
        return ClassCounts(self.true[criteria], self.false[criteria])


def too_few(n: ClassCounts, *, clustered: bool) -> str:
    """Return why a mean over criteria has neither interval nor test; '' if enough units have an answer.

    >>> one = np.ones((1, 9), dtype=np.int64)
    >>> too_few(ClassCounts(one, one), clustered=False), too_few(ClassCounts(one, one), clustered=True)
    ('fewer than 10 chats', 'fewer than 10 clusters of chats')
    """
    if np.count_nonzero(n.total) >= MINIMUM_CHATS:
        return ""
    return FEW_CLUSTERS if clustered else FEW_CHATS


def macro_rates(right: ClassCounts, n: ClassCounts, *, reason: str) -> dict[str, Estimate]:
    """Compute accuracy, balanced accuracy, TPR and TNR of one judge.

    Parameters
    ----------
    right, n : right answers, and answers.
    reason : why the accuracy is undefined without an answer.

    Returns
    -------
    dict of Estimate : accuracy over all answers together. TPR is the mean over criteria with a human True,
        TNR over those with a human False, balanced accuracy over those with both: a judge that gives one
        answer on each criterion gets 0.50, whatever their base rates. Intervals of `mean_share`; of balanced
        accuracy MOVER.

    Examples
    --------
    >>> n = ClassCounts(np.array([[1, 1, 1, 0], [0, 0, 0, 1]]), np.array([[0, 0, 0, 1], [1, 1, 1, 0]]))
    >>> right = ClassCounts(np.array([[1, 1, 1, 0], [0, 0, 0, 0]]), np.array([[0, 0, 0, 0], [1, 1, 1, 0]]))
    >>> rates = macro_rates(right, n, reason="")
    >>> rates["accuracy"].value, rates["balanced_accuracy"].value
    (0.75, 0.5)
    """
    tpr = mean_share(right.true, n.true, reason=NO_HUMAN_TRUE)
    tnr = mean_share(right.false, n.false, reason=NO_HUMAN_FALSE)
    return {
        "accuracy": mean_share(right.total, n.total, reason=reason).estimate,
        "balanced_accuracy": _balanced(right, n, tpr, tnr),
        "tpr": tpr.estimate,
        "tnr": tnr.estimate,
    }


def _balanced(right: ClassCounts, n: ClassCounts, tpr: MeanShare, tnr: MeanShare) -> Estimate:
    both = n.both
    if not both.any():
        missing = tpr if tpr.estimate.value is None else tnr
        return Estimate(None, reason=NO_BOTH_CLASSES if len(both) > 1 else missing.estimate.reason)
    if not both.all():
        right, n = right.within(both), n.within(both)
        tpr = mean_share(right.true, n.true, reason=NO_HUMAN_TRUE)
        tnr = mean_share(right.false, n.false, reason=NO_HUMAN_FALSE)
    return balanced(tpr, tnr).estimate


def macro_difference(first: ClassCounts, second: ClassCounts, n: ClassCounts) -> MeanShare:
    """Balanced accuracy of one judge minus another's, averaged over the criteria with both classes.

    `first`, `second` : answers that only the first judge, or only the second, has right. Undefined without a
    criterion with both classes.

    >>> n = ClassCounts(np.array([[1, 1, 0, 0]]), np.array([[0, 0, 1, 1]]))
    >>> first = ClassCounts(np.array([[1, 0, 0, 0]]), np.array([[0, 0, 0, 0]]))
    >>> macro_difference(first, ClassCounts(0 * n.true, 0 * n.false), n).estimate.value
    0.25
    """
    first, second, n = (counts.within(n.both) for counts in (first, second, n))
    true = mean_difference(first.true, second.true, n.true, reason=NO_BOTH_CLASSES)
    return balanced(true, mean_difference(first.false, second.false, n.false, reason=NO_BOTH_CLASSES))
