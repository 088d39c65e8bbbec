"""Paired tests and intervals: two judges on the same chats, against the same human labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, betainc, ndtri, stdtr

from alignment.statistics.estimates import Interval
from alignment.statistics.intervals import student_quantile, wilson

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairedTable:
    """Counts of chats by which judge is right.

    Parameters
    ----------
    both, first, second, neither : both are right, only the first, only the second, none.

    Raises
    ------
    ValueError : a count is negative.

    Examples
    --------
    >>> PairedTable(both=53, first=16, second=8, neither=9).difference
    0.09302325581395349
    """

    both: int
    first: int
    second: int
    neither: int

    def __post_init__(self) -> None:
        if min(self.both, self.first, self.second, self.neither) < 0:
            raise ValueError(f"negative count in {self}")

    @property
    def n(self) -> int:
        """Number of chats."""
        return self.both + self.first + self.second + self.neither

    @property
    def difference(self) -> float | None:
        """Share of right verdicts of the first minus that of the second, in [-1, 1]. None without a chat."""
        return (self.first - self.second) / self.n if self.n else None


def mcnemar_midp(worse: float, better: float, *, degrees: float = math.inf) -> float:
    """One-sided mid-p value of McNemar's test of whether `worse` exceeds `better`.

    P(X > worse) + P(X = worse) / 2 with X ~ Binomial(worse + better, 1/2).

    Parameters
    ----------
    worse, better : counts of the discordant pairs of each kind, not negative; fractions for effective counts,
        whose binomial probabilities are the incomplete beta function's.
    degrees : degrees of freedom of effective counts: the normal quantile of the p value is then referred to
        Student's t.

    Returns
    -------
    float : in [0, 1]; 1 without a discordant pair.

    Notes
    -----
    Fagerland, Lydersen & Laake (2013), BMC Med Res Methodol 13:91. The exact test has too little power: at
    100 chats it detects a true loss of 5 points in 24% of cases, the mid-p test in 46%.

    Examples
    --------
    >>> round(2 * mcnemar_midp(7, 1), 4)
    0.0391
    """
    n = worse + better
    if n == 0:
        return 1.0
    # The mean of P(X > worse) and P(X >= worse).
    if float(worse).is_integer() and float(better).is_integer():
        p = float((bdtrc(int(worse), int(n), 0.5) + bdtrc(int(worse) - 1, int(n), 0.5)) / 2)
    else:
        above = betainc(worse + 1, better, 0.5) if better else 0.0
        p = float(above + (betainc(worse, better + 1, 0.5) if worse else 1.0)) / 2
    return p if math.isinf(degrees) else float(stdtr(degrees, ndtri(p)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values, in the input's order.

    Parameters
    ----------
    p_values : of one family of tests, each in [0, 1].

    Returns
    -------
    list of float : adjusted p values, each in [0, 1].

    Notes
    -----
    Holm (1979), Scand J Stat 6:65. statsmodels' `multipletests` runs the garbage collector in each call,
    a tenth of a second, which is too slow for simulations of thousands of releases.

    Examples
    --------
    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03, 0.04])]
    [0.04, 0.09, 0.09, 0.09]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return _in_input_order(steps, order)


def benjamini_yekutieli(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values, in the input's order, that control false discoveries under any dependence.

    Parameters
    ----------
    p_values : of one family of tests, each in [0, 1].

    Returns
    -------
    list of float : adjusted p values, each in [0, 1].

    Notes
    -----
    Benjamini & Yekutieli (2001), Ann Stat 29:1165: step-up, p n (1 + 1/2 + ... + 1/n) / rank. SciPy has
    `false_discovery_control`, but importing `scipy.stats` takes longer than opening a stored report.

    Examples
    --------
    >>> [round(p, 4) for p in benjamini_yekutieli([0.01, 0.04, 0.03])]
    [0.055, 0.0733, 0.0733]
    """
    values = np.asarray(p_values, dtype=np.float64)
    ranks = np.arange(1, len(values) + 1)
    order = np.argsort(values, kind="stable")
    steps = values[order] * len(values) * (1 / ranks).sum() / ranks
    return _in_input_order(np.minimum.accumulate(steps[::-1])[::-1], order)


def _in_input_order(steps: Floats, order: NDArray[np.intp]) -> list[float]:
    adjusted = np.empty_like(steps)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(p) for p in adjusted]


def tango_z(first: ArrayLike, second: ArrayLike, n: ArrayLike, *, at: float) -> Floats:
    """Tango's score statistic of the paired difference (first - second) / n against the true difference `at`.

    (first - second - n at) / sqrt(n (2 q + at (1 - at))), q the second's share by constrained maximum
    likelihood.

    Parameters
    ----------
    first, second : counts of the discordant pairs; fractions for expected counts.
    n : number of pairs; same shape as `first` and `second`.
    at : in the open interval (-1, 1).

    Returns
    -------
    array : of the common shape; 0 without a discordant pair if at = 0.

    Notes
    -----
    Tango (1998), Stat Med 17:891, formulas 24 to 26.

    Examples
    --------
    >>> round(float(tango_z(0, 1, 44, at=-0.1)), 3)
    1.709
    """
    b, c, total = (np.asarray(value, dtype=np.float64) for value in (first, second, n))
    linear = (2 * total - b + c) * at - b - c
    constant = -c * at * (1 - at)
    q = (np.sqrt(linear**2 - 8 * total * constant) - linear) / (4 * total)
    variance = total * (2 * q + at * (1 - at))
    distance = b - c - total * at
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(distance) < 1e-12, 0.0, distance / np.sqrt(variance))


def tango_interval(table: PairedTable, *, confidence: float = 0.95) -> Interval | None:
    """Tango's score interval of the paired difference.

    Parameters
    ----------
    table : the four counts.
    confidence : two-sided; 0.90 for a one-sided bound of 95%.

    Returns
    -------
    Interval or None : within [-1, 1]; None without a chat. Without a discordant pair it is
        z^2 / (n + z^2) wide on each side.

    Notes
    -----
    Tango (1998), Stat Med 17:891.

    Examples
    --------
    >>> interval = tango_interval(PairedTable(both=53, first=16, second=8, neither=9))
    >>> round(interval.low, 3), round(interval.high, 3)
    (-0.02, 0.207)
    """
    return tango_bounds(table.first, table.second, table.n, confidence=confidence) if table.n else None


def tango_bounds(
    first: float, second: float, n: float, *, confidence: float = 0.95, degrees: float = math.inf
) -> Interval:
    """Tango's score interval from the discordant counts and n > 0, which may be fractional effective counts.

    `degrees` : degrees of freedom of an effective n that was estimated; infinite for counts.
    Tango (1998), Stat Med 17:891; see `tango_interval`.

    >>> interval = tango_bounds(8, 4, 43)
    >>> round(interval.low, 3), round(interval.high, 3)
    (-0.071, 0.257)
    """
    z = student_quantile(confidence, degrees)
    low, high = (_bound(first, second, n, z=z * sign, towards=-sign) for sign in (1, -1))
    return Interval(low, high)


def _bound(first: float, second: float, n: float, *, z: float, towards: int) -> float:
    """Find the true difference, on one side of the observed one, at which the statistic equals z."""
    if first + second == 0:
        return towards * z**2 / (n + z**2)
    observed = (first - second) / n
    end = towards * (1 - 1e-12)
    if math.isclose(observed, towards):
        return float(towards)

    def away(at: float) -> float:
        return float(tango_z(first, second, n, at=at)) - z

    from scipy.optimize import brentq  # here: the start of the web server does not wait for it

    return float(brentq(away, *sorted((observed, end)), xtol=1e-10))


def newcombe_interval(table: PairedTable, *, confidence: float = 0.95) -> Interval | None:
    """Newcombe's interval of the paired difference: two Wilson intervals combined by their correlation.

    With p the shares, l and u their Wilson bounds and phi the correlation (its numerator reduced by n / 2 if
    positive): low = d - sqrt((p1 - l1)^2 - 2 phi (p1 - l1)(u2 - p2) + (u2 - p2)^2), high likewise.

    Parameters
    ----------
    table : the four counts.
    confidence : two-sided.

    Returns
    -------
    Interval or None : within [-1, 1]; None without a chat.

    Notes
    -----
    Newcombe (1998), Stat Med 17:2635, method 10.

    Examples
    --------
    >>> interval = newcombe_interval(PairedTable(both=20, first=12, second=2, neither=16))
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0562, 0.3292)
    """
    if table.difference is None:
        return None
    one, other = table.both + table.first, table.both + table.second
    first, second = (wilson(right, table.n, confidence=confidence) for right in (one, other))
    assert first and second  # noqa: S101  n > 0
    phi = _phi(table)
    below = (one / table.n - first.low, second.high - other / table.n)
    above = (first.high - one / table.n, other / table.n - second.low)
    low, high = (math.sqrt(a * a - 2 * phi * a * b + b * b) for a, b in (below, above))
    return Interval(max(-1.0, table.difference - low), min(1.0, table.difference + high))


def _phi(table: PairedTable) -> float:
    """Correlation of the two judges, its numerator corrected for continuity; 0 with an empty margin."""
    a, b, c, d = table.both, table.first, table.second, table.neither
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if not margins:
        return 0.0
    numerator = a * d - b * c
    corrected = max(numerator - table.n / 2, 0) if numerator > 0 else numerator
    return float(corrected / math.sqrt(margins))
