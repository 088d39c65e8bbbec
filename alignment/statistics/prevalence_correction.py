"""What share of all chats is True, from a judge that errs and the chats people have labelled."""

import math
from dataclasses import dataclass

from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import mover_mean, normal_quantile, proportion

WIDEST_USABLE = 0.5

CLIPPED = "the judge's rate lies outside what its errors allow: clipped"
TOO_WIDE = "not usable: the interval is wider than 0.5"
NO_BETTER = "the judge is no better than chance (TPR + TNR <= 1)"


@dataclass(frozen=True)
class CorrectedShare:
    """A share after correction: clipped to [0, 1], and as the formula gave it."""

    value: float
    raw: float

    @property
    def clipped(self) -> bool:
        """The formula's value was outside [0, 1]."""
        return self.value != self.raw


def rogan_gladen(*, apparent: float, tpr: float, tnr: float) -> CorrectedShare | None:
    """True share behind a judge's share of True, (p + TNR - 1) / (TPR + TNR - 1).

    Parameters
    ----------
    apparent : share of chats the judge answers True.
    tpr, tnr : the judge's rates against people.

    Returns
    -------
    CorrectedShare or None : None when TPR + TNR <= 1, a judge no better than chance.

    Notes
    -----
    Rogan & Gladen (1978), Am J Epidemiol 107:71. Assumes the judge's TPR and TNR carry over to all chats.

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
    *, apparent: float, n: int, tpr: float, n_true: int, tnr: float, n_false: int, confidence: float = 0.95
) -> Interval | None:
    """Interval of the Rogan-Gladen share with TPR and TNR that are themselves estimated.

    Adds 2 to each of `n_true` and `n_false` (1 success) and z^2 to `n` (z^2/2 successes), takes the
    delta-method error of the share p so found, and shifts the centre by
    2 z^2 (p TPR (1 - TPR) / n_true - (1 - p) TNR (1 - TNR) / n_false).

    Parameters
    ----------
    apparent, n : the judge's share of True and the chats it was found on.
    tpr, n_true, tnr, n_false : the judge's rates and the human answers they were found on.

    Returns
    -------
    Interval or None : clipped to [0, 1]; None when the judge is no better than chance.

    Notes
    -----
    Lang & Reiczigel (2014), Prev Vet Med 113:13.

    Examples
    --------
    >>> interval = lang_reiczigel(apparent=0.3, n=100, tpr=0.9, n_true=50, tnr=0.95, n_false=60)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.1711, 0.4197)
    """
    positive, negative = _one_more_of_each(tpr, n_true), _one_more_of_each(tnr, n_false)
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
    """A rate after adding a success and a failure, and its variance."""

    rate: float
    spread: float


def _one_more_of_each(rate: float, n: int) -> _Adjusted:
    adjusted = (n * rate + 1) / (n + 2)
    return _Adjusted(adjusted, adjusted * (1 - adjusted) / (n + 2))


def corrected_share(*, table: Confusion, judge_true: int, judge_n: int) -> Estimate:
    """Share of all chats that are True, for curated or balanced labels: Rogan-Gladen.

    On the labelled chats Rogan-Gladen gives back people's own share, so the value is the mean of that and of
    the corrected share of the other chats, which alone may have to be clipped. So is the interval: Wilson's
    of the first and Lang-Reiczigel's of the second, joined by MOVER. One Lang-Reiczigel over all chats would
    count the labelled ones twice.

    Parameters
    ----------
    table : people against the judge on the labelled chats.
    judge_true, judge_n : the judge's True and all its True and False verdicts, those of `table` among them.

    Returns
    -------
    Estimate : undefined, with the reason, without verdicts, without a human class, or with a judge no better
        than chance. Flagged when clipped. No interval, "not usable", when it would be wider than 0.5. The
        interval is stretched to hold the value where shrinkage has moved it off.

    Examples
    --------
    >>> estimate = corrected_share(table=Confusion(45, 5, 3, 57), judge_true=78, judge_n=210)
    >>> round(estimate.value, 3)
    0.378
    """
    if judge_n == 0:
        return Estimate(None, reason="no verdict of True or False")
    if table.tpr is None or table.tnr is None:
        return Estimate(None, reason="needs chats that people answered True and chats they answered False")
    if table.tpr + table.tnr <= 1:
        return Estimate(None, reason=NO_BETTER)
    labelled, people = table.n / judge_n, proportion(table.human_true, table.n, reason="")
    others = _corrected(table, judge_true - table.judge_true, judge_n - table.n)
    value = labelled * table.human_true / table.n + (1 - labelled) * (others.value or 0.0)
    interval = mover_mean(people, others, weight=labelled).interval
    if interval is None or interval.high - interval.low > WIDEST_USABLE:
        return Estimate(value, reason=TOO_WIDE, flag=others.flag)
    return Estimate(value, interval.holding(value), flag=others.flag)


def _corrected(table: Confusion, judge_true: int, judge_n: int) -> Estimate:
    """Of chats of which none is labelled; without any they have no weight, and anything will do."""
    assert table.tpr is not None and table.tnr is not None  # noqa: S101  checked before
    if judge_n == 0:
        return Estimate(0.0, Interval(0.0, 0.0))
    rates = {"apparent": judge_true / judge_n, "tpr": table.tpr, "tnr": table.tnr}
    share = rogan_gladen(**rates)
    interval = lang_reiczigel(**rates, n=judge_n, n_true=table.human_true, n_false=table.human_false)
    assert share is not None  # noqa: S101  the judge is better than chance
    flag = CLIPPED if share.clipped else ""
    return Estimate(share.value, interval and interval.holding(share.value), flag=flag)
