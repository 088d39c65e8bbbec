"""Differences between two variants of an experiment that stay valid however often they are looked at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, gammaln, logsumexp

from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import normal_quantile

# The interval is narrowest, for its confidence, around differences of this size.
TYPICAL = 0.05
FEWEST_UNITS = 30
MISMATCH = 0.001
# Priors of the true shares around the planned ones: standard deviations of 15, 5 and 1.6 points at one half.
CONCENTRATIONS = np.array([10.0, 100.0, 1000.0])


@dataclass(frozen=True)
class Totals:
    """Sums over the units of one variant that give its rate and its error; they add up over batches of units.

    Parameters
    ----------
    units : number of units (users), the clusters.
    passed, n : passes and applicable chats, or their sums of weights.
    passed_squared, n_squared, product : sums over units of passed^2, n^2 and passed times n.
    """

    units: int
    passed: float
    n: float
    passed_squared: float
    n_squared: float
    product: float

    @classmethod
    def of_units(cls, passed: ArrayLike, n: ArrayLike) -> "Totals":
        """Sum up units.

        Parameters
        ----------
        passed, n : by unit over all its chats so far, shape (units,); units without a chat do not count.

        Examples
        --------
        >>> Totals.of_units([2, 0], [2, 1])
        Totals(units=2, passed=2.0, n=3.0, passed_squared=4.0, n_squared=5.0, product=4.0)
        """
        items = np.asarray(n, dtype=np.float64)
        right = np.asarray(passed, dtype=np.float64)[items > 0]
        items = items[items > 0]
        if np.any(right > items) or np.any(right < 0):
            raise ValueError("needs 0 <= passed <= n in every unit")
        sums = (right, items, right**2, items**2, right * items)
        return cls(items.size, *(float(one.sum()) for one in sums))

    def rate(self) -> float:
        """Share of passes; `n` must be above 0."""
        return self.passed / self.n

    def variance(self) -> float:
        """Variance of the rate with units as clusters.

        sum (x - p n)^2 / N^2 times U / (U - 1), the linearised ratio estimator (Cochran 1977, section 6.3).
        Not below that of one answer a unit with one pass and one failure added, so that units that all passed
        are no certainty.
        """
        rate = self.rate()
        residuals = self.passed_squared - 2 * rate * self.product + rate**2 * self.n_squared
        clustered = max(residuals, 0.0) / self.n**2 * self.units / (self.units - 1)
        effective = self.n**2 / self.n_squared
        moved = (rate * effective + 1) / (effective + 2)
        return max(clustered, moved * (1 - moved) / max(self.n, effective))


def sequential_margin(variance: float, *, confidence: float = 0.95, typical: float = TYPICAL) -> float:
    """Half-width of a confidence sequence for an estimate with this variance.

    m^2 = V (V + t^2) / t^2 (2 log(1 / a) + log((V + t^2) / V)), with a = 1 - confidence and t = `typical`.

    Parameters
    ----------
    variance : V above 0 today. typical : size of a difference that is expected; chosen before the start.

    Notes
    -----
    Robbins' normal mixture (Robbins 1970, Ann Math Stat 41:1397; mSPRT: Johari, Koomen, Pekelis & Walsh 2022,
    Oper Res 70:1806), as an asymptotic confidence sequence (Waudby-Smith et al. 2024, Ann Stat 52:2613).

    Examples
    --------
    >>> round(sequential_margin(0.02**2), 4), round(1.96 * 0.02, 4)
    (0.0608, 0.0392)
    """
    mixed = variance + typical**2
    return math.sqrt(
        variance * mixed / typical**2 * (2 * -math.log(1 - confidence) + math.log(mixed / variance))
    )


def sequential_difference(
    control: Totals, variant: Totals, *, confidence: float = 0.95, typical: float = TYPICAL
) -> Estimate:
    """Rate of the variant less that of the control, with an always-valid interval.

    Parameters
    ----------
    control, variant : all units and chats so far. A unit belongs to one variant.
    confidence : probability that all intervals ever shown for this difference hold the true one.
    typical : see `sequential_margin`.

    Returns
    -------
    Estimate : the interval is clipped to [-1, 1]. Undefined without a chat; without an interval below 30
        units in either variant, where the normal approximation does not hold yet.

    Examples
    --------
    >>> ones = np.ones(400)
    >>> a, b = Totals.of_units(np.arange(400) % 5 > 0, ones), Totals.of_units(np.arange(400) % 10 > 0, ones)
    >>> difference = sequential_difference(a, b)
    >>> round(difference.value, 2), round(difference.interval.low, 3), round(difference.interval.high, 3)
    (0.1, 0.023, 0.177)
    """
    if not control.n or not variant.n:
        return Estimate(None, reason="a variant has no applicable chat")
    value = variant.rate() - control.rate()
    fewest = min(control.units, variant.units)
    if fewest < FEWEST_UNITS:
        return Estimate(value, reason=f"too few units: {fewest} of {FEWEST_UNITS}")
    margin = sequential_margin(
        control.variance() + variant.variance(), confidence=confidence, typical=typical
    )
    return Estimate(value, Interval(max(-1.0, value - margin), min(1.0, value + margin)))


def minimum_detectable(
    variance: float, *, power: float = 0.8, confidence: float = 0.95, typical: float | None = TYPICAL
) -> float:
    """Smallest true difference whose interval excludes 0 with this power, once the variance is reached.

    Parameters
    ----------
    variance : of the difference at the planned end: see `planned_variance`.
    typical : of the sequential interval; None: the plain interval of an experiment looked at once.

    Examples
    --------
    >>> round(minimum_detectable(0.02**2, typical=None), 4)  # (1.96 + 0.84) standard errors
    0.056
    """
    error = math.sqrt(variance)
    if typical is None:
        margin = normal_quantile(confidence) * error
    else:
        margin = sequential_margin(variance, confidence=confidence, typical=typical)
    return margin + normal_quantile(2 * power - 1) * error


def planned_variance(
    rate: float, *, units: tuple[float, float], chats_per_unit: float, correlation: float
) -> float:
    """Variance of a difference with so many units in either variant.

    p (1 - p) (1 + (m - 1) r) / m (1 / U1 + 1 / U2), with m chats a unit and r their correlation within a unit
    (Kish 1965, Survey Sampling, 5.4).

    >>> round(planned_variance(0.9, units=(1000, 1000), chats_per_unit=2, correlation=0.2), 7)
    0.000108
    """
    single = rate * (1 - rate) * (1 + (chats_per_unit - 1) * correlation) / chats_per_unit
    return single * (1 / units[0] + 1 / units[1])


@dataclass(frozen=True)
class SampleRatio:
    """Whether the units fell to the variants as planned.

    Parameters
    ----------
    p : chi-squared test of today's counts; valid for one look. None without a unit.
    log10_evidence : against the planned shares; valid on every look.
    mismatch : evidence of 1 / 0.001 or more: the assignment is broken, and no difference can be trusted.
    """

    p: float | None
    log10_evidence: float
    mismatch: bool


def sample_ratio(units: Sequence[int], shares: Sequence[float]) -> SampleRatio:
    """Check the numbers of units against the planned shares.

    Parameters
    ----------
    units : by variant, at least two. shares : planned, above 0; scaled to sum to 1.

    Returns
    -------
    SampleRatio

    Raises
    ------
    ValueError : another number of shares than of variants, or a share that is not above 0.

    Notes
    -----
    Chi-squared: Fabijan et al. (2019), KDD. Evidence: the multinomial likelihood averaged over a Dirichlet
    prior around the planned shares, by that of these shares (Lindon & Malek 2022, NeurIPS 35); the mean over
    three priors.

    Examples
    --------
    >>> check = sample_ratio([821_588, 815_482], [0.5, 0.5])
    >>> check.p < 0.001, check.mismatch
    (True, True)
    """
    if len(units) != len(shares) or len(units) < 2 or min(shares) <= 0:
        raise ValueError("needs a planned share above 0 for each of at least two variants")
    counts: NDArray[np.float64] = np.asarray(units, dtype=np.float64)
    planned: NDArray[np.float64] = np.asarray(shares, dtype=np.float64) / sum(shares)
    if not counts.sum():
        return SampleRatio(None, 0.0, False)
    expected = counts.sum() * planned
    p = float(chdtrc(counts.size - 1, ((counts - expected) ** 2 / expected).sum()))
    priors = CONCENTRATIONS[:, np.newaxis] * planned
    ratios = (gammaln(priors + counts) - gammaln(priors) - counts * np.log(planned)).sum(axis=1)
    ratios += gammaln(CONCENTRATIONS) - gammaln(CONCENTRATIONS + counts.sum())
    logs = float(logsumexp(ratios) - math.log(ratios.size))
    return SampleRatio(p, logs / math.log(10), logs >= -math.log(MISMATCH))
