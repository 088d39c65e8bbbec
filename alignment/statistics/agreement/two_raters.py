"""Chance-corrected agreement of two raters from their q x q table."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from alignment.statistics.agreement import formulas
from alignment.statistics.estimates import Estimate, Interval


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa, and whether one rater always gave the same answer, which forces it to 0."""

    value: float | None
    constant_rows: bool
    constant_columns: bool


@dataclass(frozen=True)
class GwetAC1:
    """AC1 with its 95% interval, and its standard error; None without an interval."""

    estimate: Estimate
    standard_error: float | None


def _table(table: ArrayLike) -> formulas.Floats:
    counts = formulas.checked_counts(table)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.shape[0] < 2:
        raise ValueError(f"needs a square table with two or more categories, not {counts.shape}")
    return counts


def cohen_kappa(table: ArrayLike) -> Kappa:
    """Cohen's kappa, (po - pe) / (1 - pe) with pe the sum of row share x column share.

    Parameters
    ----------
    table : counts, shape (q, q), q >= 2; rows are the first rater, columns the second.

    Returns
    -------
    Kappa : in [-1, 1]; value None when pe = 1 (both always gave the same answer) or n = 0. With one constant
        rater the value is 0, and the flags name that rater.

    Raises
    ------
    ValueError : not a square table of counts.

    Notes
    -----
    Cohen (1960), Educ Psychol Meas 20:37.

    Examples
    --------
    >>> round(cohen_kappa([[40, 9], [6, 45]]).value, 2)
    0.7
    >>> cohen_kappa([[95, 0], [5, 0]])
    Kappa(value=0.0, constant_rows=False, constant_columns=True)
    """
    counts = _table(table)
    constant = [bool(counts.any() and (counts.sum(axis=axis) > 0).sum() == 1) for axis in (1, 0)]
    return Kappa(formulas.scalar(formulas.cohen_kappa(counts)), constant[0], constant[1])


def scott_pi(table: ArrayLike) -> float | None:
    """Scott's pi: kappa with pe from the mean of the two raters' margins.

    Parameters
    ----------
    table : counts, shape (q, q), q >= 2.

    Returns
    -------
    float or None : in [-1, 1]; None when pe = 1 or n = 0.

    Raises
    ------
    ValueError : not a square table of counts.

    Notes
    -----
    Scott (1955), Public Opin Q 19:321.

    Examples
    --------
    >>> round(scott_pi([[40, 9], [6, 45]]), 3)
    0.699
    """
    return formulas.scalar(formulas.scott_pi(_table(table)))


def brennan_prediger(table: ArrayLike) -> float | None:
    """Brennan-Prediger coefficient, (po - 1/q) / (1 - 1/q); with two categories PABAK = 2 po - 1.

    Parameters
    ----------
    table : counts, shape (q, q), q >= 2; include rows and columns of unused categories.

    Returns
    -------
    float or None : in [-1 / (q - 1), 1]; None when n = 0.

    Raises
    ------
    ValueError : not a square table of counts.

    Notes
    -----
    Brennan & Prediger (1981), Educ Psychol Meas 41:687; Byrt, Bishop & Carlin (1993), J Clin Epidemiol
    46:423.

    Examples
    --------
    >>> round(brennan_prediger([[40, 9], [6, 45]]), 3)
    0.7
    """
    return formulas.scalar(formulas.brennan_prediger(_table(table)))


def gwet_ac1(table: ArrayLike) -> GwetAC1:
    """Gwet's AC1 of two raters, with the 95% t interval of the table form.

    AC1 = (po - pe) / (1 - pe), pe = sum of p (1 - p) over (q - 1), p the mean of the raters' margins.

    Parameters
    ----------
    table : counts, shape (q, q), q >= 2.

    Returns
    -------
    GwetAC1 : value None when n = 0. If both always gave the same answer, 1 without an interval. The interval
        has n - 1 degrees of freedom, needs n >= 2 and is clipped to [-1, 1].

    Raises
    ------
    ValueError : not a square table of counts.

    Notes
    -----
    Gwet (2008), BJMSP 61:29: variance of the table form, which divides by n. The form for several raters
    divides by n (n - 1), so the two differ in the third digit.

    Examples
    --------
    >>> result = gwet_ac1([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
    >>> round(result.estimate.value, 5), round(result.standard_error, 5)
    (0.84933, 0.04322)
    """
    counts = _table(table)
    value = formulas.scalar(formulas.gwet_ac1(counts))
    if value is None:
        return GwetAC1(Estimate(None, reason="no item"), None)
    n = counts.sum()
    if n < 2 or counts.max() == counts.trace() == n:
        return GwetAC1(Estimate(value, reason="one item or one class only"), None)
    error = math.sqrt(_ac1_variance(counts / n, value) / n)
    return GwetAC1(Estimate(value, t_interval(value, error, degrees=int(n) - 1)), error)


def _ac1_variance(shares: formulas.Floats, ac1: float) -> float:
    """n times the variance of AC1, from the q x q shares."""
    margins = (shares.sum(axis=0) + shares.sum(axis=1)) / 2
    observed, chance = shares.trace(), formulas.ac1_chance(margins)
    spread = len(margins) - 1
    on_diagonal = (np.diag(shares) * (1 - margins)).sum() / spread
    everywhere = (shares * (1 - (margins[:, None] + margins) / 2) ** 2).sum() / spread**2
    variance = (
        observed * (1 - observed)
        - 4 * (1 - ac1) * (on_diagonal - observed * chance)
        + 4 * (1 - ac1) ** 2 * (everywhere - chance**2)
    )
    return max(0.0, float(variance / (1 - chance) ** 2))


def t_interval(value: float, error: float, *, degrees: int, confidence: float = 0.95) -> Interval:
    """Interval value -+ t x error with Student's t quantile, clipped to [-1, 1].

    `degrees` of freedom; `confidence` is two-sided. Student (1908), Biometrika 6:1.

    >>> t_interval(0.775, 0.1430, degrees=11).high
    1.0
    """
    margin = float(stdtrit(degrees, (1 + confidence) / 2)) * error
    return Interval(max(-1.0, value - margin), min(1.0, value + margin))
