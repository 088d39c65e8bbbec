"""Share of True in all chats, corrected for the judge's errors on labelled chats."""

import math
from dataclasses import dataclass

from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import mover_mean, normal_quantile, proportion

WIDEST_USABLE = 0.5

CLIPPED = "clipped: the judge's rate is outside the range that its error rates allow"
TOO_WIDE = "not usable: the interval is wider than 0.5"
NO_BETTER = "the judge is no better than chance (TPR + TNR <= 1)"


@dataclass(frozen=True)
class CorrectedShare:
    """A corrected share: `value` clipped to [0, 1], `raw` from the formula."""

    value: float
    raw: float

    @property
    def clipped(self) -> bool:
        """Whether the formula's value was outside [0, 1]."""
        return self.value != self.raw


def rogan_gladen(*, apparent: float, tpr: float, tnr: float) -> CorrectedShare | None:
    """True share from a judge's share of True, (p + TNR - 1) / (TPR + TNR - 1).

    Parameters
    ----------
    apparent : p, the share of chats with a verdict of True, in [0, 1].
    tpr, tnr : the judge's rates on labelled chats, in [0, 1].

    Returns
    -------
    CorrectedShare or None : None when TPR + TNR <= 1: the judge is no better than chance.

    Notes
    -----
    Rogan & Gladen (1978), Am J Epidemiol 107:71. Assumes that TPR and TNR are the same on all chats.

    Examples
    --------
    >>> round(rogan_gladen(apparent=23 / 150, tpr=0.96, tnr=0.89).value, 3)
    0.051
    >>> rogan_gladen(apparent=0.03, tpr=0.9, tnr=0.95).clipped
    True
    >>> rogan_gladen(apparent=0.5, tpr=0.5, tnr=0.5) is None
    True
    """
    youden = tpr + tnr - 1
    if youden <= 0:
        return None
    raw = (apparent + tnr - 1) / youden
    return CorrectedShare(value=min(1.0, max(0.0, raw)), raw=raw)


def lang_reiczigel(
    *, apparent: float, n: float, tpr: float, n_true: int, tnr: float, n_false: int, confidence: float = 0.95
) -> Interval | None:
    """Interval of the Rogan-Gladen share with estimated TPR and TNR.

    Adds 2 to each of `n_true` and `n_false` (1 success) and z^2 to `n` (z^2/2 successes), takes the
    delta-method error of the resulting share p, and shifts the centre by
    2 z^2 (p TPR (1 - TPR) / n_true - (1 - p) TNR (1 - TNR) / n_false).

    Parameters
    ----------
    apparent, n : the judge's share of True, and its number of chats; effective for a weighted one.
    tpr, n_true, tnr, n_false : the judge's rates, and the number of True and False labels they are from.
    confidence : two-sided.

    Returns
    -------
    Interval or None : clipped to [0, 1]; None if the judge is no better than chance.

    Notes
    -----
    Lang & Reiczigel (2014), Prev Vet Med 113:13.

    Examples
    --------
    >>> interval = lang_reiczigel(apparent=0.3, n=100, tpr=0.9, n_true=50, tnr=0.95, n_false=60)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.1711, 0.4197)
    """
    positive, negative = _with_one_of_each(tpr, n_true), _with_one_of_each(tnr, n_false)
    youden = positive.rate + negative.rate - 1
    if youden <= 0:
        return None
    z = normal_quantile(confidence)
    p = (n * apparent + z * z / 2) / (n + z * z)
    share = (p + negative.rate - 1) / youden
    shift = 2 * z * z * (share * positive.spread - (1 - share) * negative.spread)
    spread = p * (1 - p) / (n + z * z) + share**2 * positive.spread + (1 - share) ** 2 * negative.spread
    centre, margin = share + shift, z * math.sqrt(spread) / youden
    return Interval(min(1.0, max(0.0, centre - margin)), min(1.0, max(0.0, centre + margin)))


@dataclass(frozen=True)
class _Adjusted:
    """A rate with one success and one failure added, and its variance."""

    rate: float
    spread: float


def _with_one_of_each(rate: float, n: int) -> _Adjusted:
    adjusted = (n * rate + 1) / (n + 2)
    return _Adjusted(adjusted, adjusted * (1 - adjusted) / (n + 2))


def corrected_share(*, table: Confusion, judge_true: int, judge_n: int) -> Estimate:
    """Share of True in all chats by Rogan-Gladen, for curated or balanced labels.

    On labelled chats Rogan-Gladen returns the human share. So the value is the weighted mean of the human
    share on labelled chats and the corrected share on the others, which may be clipped. The interval combines
    Wilson's and Lang-Reiczigel's by MOVER. One Lang-Reiczigel over all chats would count the labelled ones
    twice.

    Parameters
    ----------
    table : human labels × verdicts on the labelled chats.
    judge_true, judge_n : number of verdicts of True, and of True or False, including those of `table`.

    Returns
    -------
    Estimate : in [0, 1]. Undefined, with a reason, without verdicts, without True or False labels, if the
        judge is no better than chance, or if the interval would be wider than 0.5: the value then depends on
        chance. Flagged if clipped. The interval is stretched to include the value if shrinkage has moved it.

    Notes
    -----
    Rogan & Gladen (1978), Am J Epidemiol 107:71; Lang & Reiczigel (2014), Prev Vet Med 113:13; Zou & Donner
    (2008), Stat Med 27:1693.

    Examples
    --------
    >>> estimate = corrected_share(table=Confusion(45, 5, 3, 57), judge_true=78, judge_n=210)
    >>> round(estimate.value, 3)
    0.378
    """
    if judge_n == 0:
        return Estimate(None, reason="no verdict of True or False")
    if table.tpr is None or table.tnr is None:
        return Estimate(None, reason="needs both True and False labels")
    if table.tpr + table.tnr <= 1:
        return Estimate(None, reason=NO_BETTER)
    labelled, human = table.n / judge_n, proportion(table.human_true, table.n, reason="")
    others = _corrected(table, judge_true - table.judge_true, judge_n - table.n)
    value = labelled * table.human_true / table.n + (1 - labelled) * (others.value or 0.0)
    interval = mover_mean(human, others, weight=labelled).interval
    if interval is None:  # the judge is better than chance only before shrinkage
        return Estimate(None, reason=NO_BETTER)
    if interval.high - interval.low > WIDEST_USABLE:
        return Estimate(None, reason=TOO_WIDE)
    return Estimate(value, interval.holding(value), flag=others.flag)


def raw_corrected_share(table: Confusion, *, judge_true: int, judge_n: int) -> float | None:
    """Value of `corrected_share` before it is clipped; None where the formula has no value.

    >>> round(raw_corrected_share(Confusion(45, 5, 3, 57), judge_true=78, judge_n=210), 3)
    0.378
    """
    if table.tpr is None or table.tnr is None:
        return None
    if judge_n == table.n:
        return table.human_true / table.n
    apparent = (judge_true - table.judge_true) / (judge_n - table.n)
    others = rogan_gladen(apparent=apparent, tpr=table.tpr, tnr=table.tnr)
    return None if others is None else (table.human_true + (judge_n - table.n) * others.raw) / judge_n


def _corrected(table: Confusion, judge_true: int, judge_n: int) -> Estimate:
    """Corrected share of the unlabelled chats; without any, 0, which then has no weight."""
    assert table.tpr is not None and table.tnr is not None  # noqa: S101  checked before
    if judge_n == 0:
        return Estimate(0.0, Interval(0.0, 0.0))
    rates = {"apparent": judge_true / judge_n, "tpr": table.tpr, "tnr": table.tnr}
    share = rogan_gladen(**rates)
    interval = lang_reiczigel(**rates, n=judge_n, n_true=table.human_true, n_false=table.human_false)
    assert share is not None  # noqa: S101  the judge is better than chance
    flag = CLIPPED if share.clipped else ""
    return Estimate(share.value, interval and interval.holding(share.value), flag=flag)
