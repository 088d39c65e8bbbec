"""Shares and their differences where answers on one chat hang together: intervals from effective counts."""

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
class Part:
    """A share of answers, or a difference of two; `rest` is by chat what lies above or below it.

    `p` is that of a difference: two-sided, of the score test against none. None without an answer.
    """

    estimate: Estimate
    rest: Floats
    p: float | None = None


@dataclass(frozen=True)
class Paired:
    """Right answers of two judges by chat, among `n` by chat; on `both` of all these both are right."""

    one: Ints
    other: Ints
    n: Ints
    both: int

    @property
    def table(self) -> PairedTable:
        """Answers by who is right."""
        first, second = (int(right.sum()) - self.both for right in (self.one, self.other))
        return PairedTable(self.both, first, second, int(self.n.sum()) - self.both - first - second)

    def __add__(self, more: "Paired") -> "Paired":
        """Of other answers on the same chats as well."""
        return Paired(self.one + more.one, self.other + more.other, self.n + more.n, self.both + more.both)


def share(right: Ints, n: Ints, *, reason: str) -> Part:
    """A judge's share of right answers, with Wilson's interval; undefined for the reason given."""
    total = int(n.sum())
    if not total:
        return Part(Estimate(None, reason=reason), np.zeros(len(n)))
    value = float(right.sum() / total)
    rest = right - value * n
    effect = design_effect(rest, n, independent=value * (1 - value))
    return Part(Estimate(value, wilson(float(right.sum()) / effect, total / effect)), rest)


def difference(paired: Paired, *, reason: str) -> Part:
    """The first's share of right answers minus the other's, with Tango's score interval.

    That has a width where no answer differs, too.
    """
    table = paired.table
    if table.difference is None:
        return Part(Estimate(None, reason=reason), np.zeros(len(paired.n)))
    rest = paired.one - paired.other - table.difference * paired.n
    independent = (table.first + table.second) / table.n - table.difference**2
    effect = design_effect(rest, paired.n, independent=independent)
    effective = table.first / effect, table.second / effect, table.n / effect
    p = float(2 * ndtr(-abs(float(tango_z(*effective, at=0.0)))))
    return Part(Estimate(table.difference, tango_bounds(*effective)), rest, p)


def mean(one: Part, other: Part) -> Estimate:
    """Of two parts, by MOVER with their correlation over the chats; undefined where one of them is."""
    return mover_mean(one.estimate, other.estimate, correlation=_correlation(one.rest, other.rest))


def _correlation(one: Floats, other: Floats) -> float:
    """How far two parts go up and down together over the chats.

    Not below 0: that would narrow an interval on thin evidence.
    """
    scale = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return max(0.0, float((one * other).sum()) / scale) if scale else 0.0


def design_effect(rest: Floats, n: Ints, *, independent: float) -> float:
    """
    How many answers tell as much as one would if a chat's answers were independent of each other.

    Parameters
    ----------
    rest : by chat, the sum of its answers less what was expected of so many.
    n : answers by chat.
    independent : variance of a single answer.

    Returns
    -------
    float : at least 1. Where nothing tells how far a chat's answers hang together (below 10 chats, or no
        variance), a chat counts as one answer.

    Examples
    --------
    >>> design_effect(np.array([1.0, -1.0] * 8), np.full(16, 2), independent=0.25)
    2.0
    """
    chats, total = int((n > 0).sum()), int(n.sum())
    if chats < MINIMUM_CHATS or not independent:
        return total / chats
    return max(1.0, float((rest**2).sum()) / total / independent)
