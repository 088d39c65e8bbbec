"""The 2x2 table of human labels × verdicts, and its statistics."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.statistics.agreement import formulas


@dataclass(frozen=True)
class Confusion:
    """Counts of pairs (human label, verdict); True is the positive class, human labels are the rows.

    Statistics are shares in [0, 1]; kappa, pi, AC1, PABAK and MCC lie in [-1, 1]. None where the formula is
    0/0.

    Parameters
    ----------
    tp, fn, fp, tn : both True; human True and judge False; human False and judge True; both False.

    Raises
    ------
    ValueError : a count is negative.

    Examples
    --------
    >>> table = Confusion(tp=80, fn=10, fp=5, tn=5)
    >>> table.n, table.accuracy, table.tnr
    (100, 0.85, 0.5)
    >>> Confusion(tp=3, fn=1, fp=0, tn=0).tnr is None
    True
    """

    tp: int
    fn: int
    fp: int
    tn: int

    def __post_init__(self) -> None:
        if min(self.tp, self.fn, self.fp, self.tn) < 0:
            raise ValueError(f"negative count in {self}")

    def __add__(self, other: "Confusion") -> "Confusion":
        return Confusion(self.tp + other.tp, self.fn + other.fn, self.fp + other.fp, self.tn + other.tn)

    @property
    def cells(self) -> NDArray[np.int64]:
        """The counts as an array of shape (4,): tp, fn, fp, tn."""
        return np.array([self.tp, self.fn, self.fp, self.tn], dtype=np.int64)

    @property
    def n(self) -> int:
        """Number of pairs."""
        return self.tp + self.fn + self.fp + self.tn

    @property
    def human_true(self) -> int:
        """Pairs with a human True."""
        return self.tp + self.fn

    @property
    def human_false(self) -> int:
        """Pairs with a human False."""
        return self.fp + self.tn

    @property
    def judge_true(self) -> int:
        """Pairs with a verdict of True."""
        return self.tp + self.fp

    @property
    def judge_false(self) -> int:
        """Pairs with a verdict of False."""
        return self.fn + self.tn

    @property
    def constant_human(self) -> bool:
        """All human labels are the same: kappa is then 0 for any judge."""
        return self.n > 0 and 0 in (self.human_true, self.human_false)

    @property
    def constant_judge(self) -> bool:
        """All verdicts are the same: kappa is then 0."""
        return self.n > 0 and 0 in (self.judge_true, self.judge_false)

    def _value(self, statistic: Callable[[NDArray[Any]], formulas.Floats]) -> float | None:
        return formulas.scalar(statistic(self.cells))

    def _table_value(self, statistic: Callable[[formulas.Floats], formulas.Floats]) -> float | None:
        return formulas.scalar(statistic(formulas.tables(self.cells)))

    @property
    def accuracy(self) -> float | None:
        """Raw agreement, (tp + tn) / n. None when n = 0."""
        return self._value(formulas.accuracy)

    @property
    def tpr(self) -> float | None:
        """True positive rate (recall, sensitivity), tp / (tp + fn). None without a human True."""
        return self._value(formulas.tpr)

    @property
    def tnr(self) -> float | None:
        """True negative rate (specificity), tn / (tn + fp). None without a human False."""
        return self._value(formulas.tnr)

    @property
    def balanced_accuracy(self) -> float | None:
        """(TPR + TNR) / 2. None when either is: one rate alone overrates a constant judge.

        Brodersen et al. (2010), ICPR, 3121-3124.
        """
        return self._value(formulas.balanced_accuracy)

    @property
    def precision(self) -> float | None:
        """tp / (tp + fp). None when the judge never answered True."""
        return self._value(formulas.precision)

    @property
    def f1(self) -> float | None:
        """2 tp / (2 tp + fn + fp), van Rijsbergen (1979). None without a True from either side."""
        return self._value(formulas.f1)

    @property
    def mcc(self) -> float | None:
        """Matthews correlation, (tp tn - fn fp) / sqrt of the product of the four margins.

        None when a margin is 0: 0/0, not "no correlation". Matthews (1975), Biochim Biophys Acta 405:442.
        """
        return self._value(formulas.mcc)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa. 0 when one side is constant, None when both always gave the same answer.

        Cohen (1960), Educ Psychol Meas 20:37.
        """
        return self._table_value(formulas.cohen_kappa)

    @property
    def scott_pi(self) -> float | None:
        """Scott's pi. None when both sides always gave the same answer.

        Scott (1955), Public Opin Q 19:321.
        """
        return self._table_value(formulas.scott_pi)

    @property
    def pabak(self) -> float | None:
        """Prevalence-adjusted bias-adjusted kappa, 2 accuracy - 1. None when n = 0.

        Byrt, Bishop & Carlin (1993), J Clin Epidemiol 46:423.
        """
        return self._table_value(formulas.brennan_prediger)

    @property
    def gwet_ac1(self) -> float | None:
        """Gwet's AC1, (po - pe) / (1 - pe) with pe = 2 p (1 - p), p the mean share of True.

        1 when both sides always gave the same answer; None when n = 0. Gwet (2008), BJMSP 61:29.
        """
        return self._table_value(formulas.gwet_ac1)
