"""Rates of variants, and their differences to the control: corrected for the judge's errors if possible."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from alignment.experiments.core.unit_sums import Sums, running
from alignment.monitoring.core.corrected_rates import Method, Rate, lang_reiczigel_rate, uncorrected_rate
from alignment.monitoring.core.weighted_rates import (
    REASONS,
    Reason,
    WeightedRate,
    effective_answers,
    share_interval,
)
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import mover_mean, wilson
from alignment.statistics.sequential import (
    FEWEST_UNITS,
    Totals,
    minimum_detectable,
    sequential_difference,
)

# Part of alpha that is spent on the judge's errors, once; the rest is spent on the difference, over all days.
JUDGE_PART = 0.2
SEVERAL_JUDGES = "several judges, models or prompt versions judged these chats"
UNCERTAIN_JUDGE = "too few labels: the judge may be no better than chance"


class Decision(StrEnum):
    """The finding of a difference."""

    BETTER = "better"
    WORSE = "worse"
    OPEN = "open"
    FEW = "few"
    BROKEN = "broken"


DECISION_NAMES = {
    Decision.BETTER: "Better",
    Decision.WORSE: "Worse",
    Decision.OPEN: "Not yet clear",
    Decision.FEW: "Too few units",
    Decision.BROKEN: "Sample ratio mismatch",
}


@dataclass(frozen=True, slots=True)
class Judge:
    """The judge's errors on curated labels; `table` None: no correction, for `reason`."""

    table: Confusion | None = None
    reason: str = REASONS[Reason.NO_LABELS]


@dataclass(frozen=True, slots=True)
class Difference:
    """A variant's rate minus that of the control, with always-valid intervals.

    Parameters
    ----------
    uncorrected, corrected : in [-1, 1]; `corrected` without a value has the reason.
    detectable : the smallest true difference that today's data finds with 80% power, on the scale of `shown`.
    """

    uncorrected: Estimate
    corrected: Estimate
    detectable: float | None = None

    @property
    def shown(self) -> Estimate:
        """The corrected difference if it has an interval."""
        return self.corrected if self.corrected.interval else self.uncorrected

    @property
    def is_corrected(self) -> bool:
        """Whether the shown difference is corrected."""
        return self.corrected.interval is not None

    def decision(self, *, broken: bool = False) -> Decision:
        """Say what it shows; `broken`: the sample ratio does not fit, and no difference can be trusted."""
        interval = self.shown.interval
        if broken:
            return Decision.BROKEN
        if interval is None:
            return Decision.FEW
        if interval.low > 0:
            return Decision.BETTER
        return Decision.WORSE if interval.high < 0 else Decision.OPEN


def variant_rates(totals: Totals, judge: Judge, *, alpha: float) -> tuple[Rate, Rate]:
    """Return the uncorrected and the corrected rate of a variant.

    The rate is sum w y / sum w n (Hajek), with units as clusters. Its interval is Wilson's on the effective
    number of answers, R (1 - R) / variance, with Student's quantile; for one look, not for many.

    Parameters
    ----------
    totals : over all units of the variant.
    judge : its errors, for Lang-Reiczigel with the effective number of answers.

    Notes
    -----
    Variance: `Totals.variance`. Effective number: Kish (1965), Survey Sampling, 11.7.

    Examples
    --------
    >>> totals = Totals.of_units([2] * 80 + [0] * 20, [2] * 100)
    >>> uncorrected, _ = variant_rates(totals, Judge(), alpha=0.05)
    >>> interval = uncorrected.estimate.interval
    >>> uncorrected.estimate.value, round(interval.low, 2), round(interval.high, 2)
    (0.8, 0.71, 0.87)
    """
    if not totals.n:
        missing = WeightedRate.missing(Reason.NO_ANSWERS)
        return uncorrected_rate(missing), _corrected_rate(missing, judge)
    rate = min(1.0, totals.rate())
    if totals.units < 2:
        judged = WeightedRate(Estimate(rate, reason="a single unit"), answers=totals.n)
        return uncorrected_rate(judged), Rate(Method.LANG_REICZIGEL, Estimate(None, reason="a single unit"))
    variance = totals.variance()
    effective = effective_answers(rate, variance, otherwise=float(totals.units))
    interval = share_interval(rate, effective, degrees=totals.units - 1, confidence=1 - alpha)
    judged = WeightedRate(
        Estimate(rate, interval), error=math.sqrt(variance), effective=effective, answers=totals.n
    )
    return uncorrected_rate(judged), _corrected_rate(judged, judge)


def _corrected_rate(judged: WeightedRate, judge: Judge) -> Rate:
    found = lang_reiczigel_rate(judged, judge.table)
    if judge.table is None:
        return Rate(Method.LANG_REICZIGEL, Estimate(None, reason=judge.reason), found.reason)
    return found


def difference(control: Totals, variant: Totals, judge: Judge, *, alpha: float) -> Difference:
    """Compare a variant with the control.

    Parameters
    ----------
    control, variant : all units up to now.
    alpha : probability that any interval ever shown for this difference misses the true one.

    Returns
    -------
    Difference : corrected if the judge's errors are known; see `corrected_difference`.

    Examples
    --------
    >>> control = Totals.of_units([1] * 400 + [0] * 100, [1] * 500)
    >>> variant = Totals.of_units([1] * 450 + [0] * 50, [1] * 500)
    >>> found = difference(control, variant, Judge(Confusion(95, 5, 8, 92)), alpha=0.05)
    >>> round(found.uncorrected.value, 3), round(found.corrected.value, 3), found.decision().value
    (0.1, 0.115, 'better')
    """
    plain = sequential_difference(control, variant, confidence=1 - alpha)
    corrected = corrected_difference(control, variant, judge, alpha=alpha)
    if plain.interval is None:
        return Difference(plain, corrected)
    variance = control.variance() + variant.variance()
    spent = alpha * (1 - JUDGE_PART) if corrected.interval else alpha
    detectable = minimum_detectable(variance, confidence=1 - spent)
    if corrected.interval and judge.table is not None:
        detectable /= _youden(judge.table, confidence=1 - alpha * JUDGE_PART).value or 1.0
    return Difference(plain, corrected, min(1.0, detectable))


def corrected_difference(control: Totals, variant: Totals, judge: Judge, *, alpha: float) -> Estimate:
    """Correct a difference for the judge's errors: d / J with J = TPR + TNR - 1.

    If a judge errs alike on the chats of both variants, each one's rate of passing verdicts is
    (1 - TNR) + J p, so that the difference of the true rates p is d / J (Rogan & Gladen 1978, Am J Epidemiol
    107:71, in each variant).

    Parameters
    ----------
    judge : TPR and TNR on curated labels, with the passing answer as True.

    Returns
    -------
    Estimate : clipped to [-1, 1]. The interval spans d / J over a confidence sequence of d at 1 - 0.8 alpha
        and an interval of J at 1 - 0.2 alpha (MOVER of two Wilson intervals: Zou & Donner 2008, Stat Med
        27:1693). By Bonferroni all its intervals ever shown hold the true difference with 1 - alpha. No
        value, with a reason, without labels of both classes, or where J's interval reaches 0.

    Examples
    --------
    >>> control, variant = (Totals.of_units([1] * k + [0] * (500 - k), [1] * 500) for k in (400, 450))
    >>> found = corrected_difference(control, variant, Judge(Confusion(95, 5, 8, 92)), alpha=0.05)
    >>> round(found.value, 3), found.interval.low > 0
    (0.115, True)
    """
    if judge.table is None:
        return Estimate(None, reason=judge.reason)
    youden = _youden(judge.table, confidence=1 - alpha * JUDGE_PART)
    if youden.value is None or youden.interval is None:
        return Estimate(None, reason=youden.reason)
    if youden.value <= 0:
        return Estimate(None, reason=REASONS[Reason.NO_BETTER_THAN_CHANCE])
    if youden.interval.low <= 0:
        return Estimate(None, reason=UNCERTAIN_JUDGE)
    found = sequential_difference(control, variant, confidence=1 - alpha * (1 - JUDGE_PART))
    if found.value is None or found.interval is None:
        return Estimate(None, reason=found.reason)
    bounds = [
        bound / by
        for bound in (found.interval.low, found.interval.high)
        for by in (youden.interval.low, youden.interval.high)
    ]
    value = max(-1.0, min(1.0, found.value / youden.value))
    interval = Interval(max(-1.0, min(bounds)), min(1.0, max(bounds)))
    return Estimate(value, interval.holding(value))


def _youden(table: Confusion, *, confidence: float) -> Estimate:
    """J = TPR + TNR - 1, with its interval."""
    if table.tpr is None or table.tnr is None:
        return Estimate(None, reason=REASONS[Reason.ONE_CLASS if table.n else Reason.NO_LABELS])
    rates = [
        Estimate(right / n, wilson(right, n, confidence=confidence))
        for right, n in ((table.tp, table.human_true), (table.tn, table.human_false))
    ]
    mean = mover_mean(*rates)
    if mean.value is None or mean.interval is None:
        return mean
    return Estimate(2 * mean.value - 1, Interval(2 * mean.interval.low - 1, 2 * mean.interval.high - 1))


@dataclass(frozen=True, slots=True)
class SequencePoint:
    """A difference as it stood at the end of a day, and the units behind it."""

    day: date
    difference: Difference
    units: int


def sequence(
    control: Mapping[date, Sums], variant: Mapping[date, Sums], judge: Judge, *, alpha: float
) -> list[SequencePoint]:
    """Return the difference at the end of each day, once both variants have 30 units.

    Parameters
    ----------
    control, variant : what each day adds to the sums.
    """
    days = sorted({*control, *variant})
    pair = zip(
        running((day, control.get(day, Sums())) for day in days),
        running((day, variant.get(day, Sums())) for day in days),
        strict=True,
    )
    return [
        SequencePoint(day, difference(own.totals, other.totals, judge, alpha=alpha), own.units + other.units)
        for (day, own), (_, other) in pair
        if min(own.units, other.units) >= FEWEST_UNITS
    ]
