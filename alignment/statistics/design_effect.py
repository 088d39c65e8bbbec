"""Shares and differences of answers that are correlated within a chat: intervals from effective counts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from alignment.statistics.agreement.formulas import Floats
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import MINIMUM_CHATS, mover_mean, wilson
from alignment.statistics.paired_tests import PairedTable, tango_bounds, tango_z

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CorrelatedEstimate:
    """A share of right answers, or a difference of two shares.

    Parameters
    ----------
    estimate : value in [0, 1], or in [-1, 1] for a difference, with a 95% interval.
    rest : shape (chats,), observed minus expected right answers by chat.
    p : of a difference: two-sided, score test against 0. None without an answer.
    """

    estimate: Estimate
    rest: Floats
    p: float | None = None


@dataclass(frozen=True)
class PairedAnswers:
    """Right answers of two judges, and `n` answers, by chat; `both`: answers on which both are right."""

    one: Ints
    other: Ints
    n: Ints
    both: int

    @property
    def table(self) -> PairedTable:
        """Answers by which judge is right."""
        first, second = (int(right.sum()) - self.both for right in (self.one, self.other))
        return PairedTable(self.both, first, second, int(self.n.sum()) - self.both - first - second)

    def __add__(self, more: "PairedAnswers") -> "PairedAnswers":
        """Add other answers on the same chats, e.g. of another criterion."""
        return PairedAnswers(
            self.one + more.one, self.other + more.other, self.n + more.n, self.both + more.both
        )


def share(right: Ints, n: Ints, *, reason: str) -> CorrelatedEstimate:
    """Share of right answers with Wilson's interval on effective counts.

    `right` and `n` are counts of shape (chats,). Undefined with `reason` without an answer.
    Rao & Scott (1992), Biometrics 48:577.
    """
    total = int(n.sum())
    if not total:
        return CorrelatedEstimate(Estimate(None, reason=reason), np.zeros(len(n)))
    value = float(right.sum() / total)
    rest = right - value * n
    effect = design_effect(rest, n, independent=value * (1 - value))
    return CorrelatedEstimate(Estimate(value, wilson(float(right.sum()) / effect, total / effect)), rest)


def difference(paired: PairedAnswers, *, reason: str) -> CorrelatedEstimate:
    """Share of right answers of the first judge minus the second's, with Tango's score interval.

    The interval is on effective counts and has a width even if no answer differs. Tango (1998), Stat Med
    17:891. Undefined with `reason` without an answer.
    """
    table = paired.table
    if table.difference is None:
        return CorrelatedEstimate(Estimate(None, reason=reason), np.zeros(len(paired.n)))
    rest = paired.one - paired.other - table.difference * paired.n
    independent = (table.first + table.second) / table.n - table.difference**2
    effect = design_effect(rest, paired.n, independent=independent)
    effective = table.first / effect, table.second / effect, table.n / effect
    p = float(2 * ndtr(-abs(float(tango_z(*effective, at=0.0)))))
    return CorrelatedEstimate(Estimate(table.difference, tango_bounds(*effective)), rest, p)


def mean(one: CorrelatedEstimate, other: CorrelatedEstimate) -> Estimate:
    """Mean of two shares or differences, by MOVER with their correlation over chats.

    Undefined if either is. Zou & Donner (2008), Stat Med 27:1693.
    """
    return mover_mean(one.estimate, other.estimate, correlation=_correlation(one.rest, other.rest))


def _correlation(one: Floats, other: Floats) -> float:
    """Correlation over chats, at least 0: a negative one would narrow an interval on thin data."""
    scale = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return max(0.0, float((one * other).sum()) / scale) if scale else 0.0


def design_effect(rest: Floats, n: Ints, *, independent: float) -> float:
    """Design effect: number of answers that carry the information of one independent answer.

    Parameters
    ----------
    rest : shape (chats,), observed minus expected right answers.
    n : shape (chats,), number of answers.
    independent : variance of a single answer.

    Returns
    -------
    float : at least 1. Below 10 chats, or without variance, the correlation is unknown: a chat counts as one
        answer.

    Notes
    -----
    Rao & Scott (1992), Biometrics 48:577.

    Examples
    --------
    >>> design_effect(np.array([1.0, -1.0] * 8), np.full(16, 2), independent=0.25)
    2.0
    """
    chats, total = int((n > 0).sum()), int(n.sum())
    if chats < MINIMUM_CHATS or not independent:
        return total / chats
    return max(1.0, float((rest**2).sum()) / total / independent)
