"""Vectorised formulas over many tables at once; only here an undefined value is NaN.

A bootstrap passes 2,000 tables in one call. `Confusion` and `two_raters` compute single values and turn NaN
into None. Cells are counts of shape (..., 4) in the order tp, fn, fp, tn; q x q tables have shape (..., q, q)
with the first rater in the rows. Results have shape (...). Counts up to 9e7 are exact, so 0/0 is detected.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def checked_counts(values: ArrayLike) -> Floats:
    """Convert counts of any shape to floats of the same shape.

    Raises
    ------
    ValueError : a count is negative, infinite or NaN.

    Examples
    --------
    >>> checked_counts([[1, 2]]).tolist()
    [[1.0, 2.0]]
    """
    counts = np.asarray(values, dtype=np.float64)
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("needs counts that are finite and not negative")
    return counts


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide elementwise, arrays of shapes that broadcast; NaN where the denominator is 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    undefined = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=undefined, where=denominator != 0)
    return undefined


def scalar(value: Floats) -> float | None:
    """Convert an array with one element to a float; NaN becomes None.

    >>> scalar(np.array(float("nan"))) is None
    True
    """
    number = float(value)
    return None if math.isnan(number) else number


def _columns(cells: NDArray[Any]) -> tuple[Floats, Floats, Floats, Floats]:
    tp, fn, fp, tn = np.moveaxis(np.asarray(cells, dtype=np.float64), -1, 0)
    return tp, fn, fp, tn


def accuracy(cells: NDArray[Any]) -> Floats:
    """Accuracy, (tp + tn) / n, of cells (..., 4), in [0, 1]; NaN when n = 0."""
    tp, fn, fp, tn = _columns(cells)
    return ratio(tp + tn, tp + fn + fp + tn)


def tpr(cells: NDArray[Any]) -> Floats:
    """True positive rate, tp / (tp + fn), of cells (..., 4), in [0, 1]; NaN without a human True."""
    tp, fn, _, _ = _columns(cells)
    return ratio(tp, tp + fn)


def tnr(cells: NDArray[Any]) -> Floats:
    """True negative rate, tn / (tn + fp), of cells (..., 4), in [0, 1]; NaN without a human False."""
    _, _, fp, tn = _columns(cells)
    return ratio(tn, tn + fp)


def balanced_accuracy(cells: NDArray[Any]) -> Floats:
    """Mean of TPR and TNR of cells (..., 4), in [0, 1]; NaN where either is.

    Brodersen et al. (2010), ICPR, 3121-3124.
    """
    return (tpr(cells) + tnr(cells)) / 2


def precision(cells: NDArray[Any]) -> Floats:
    """Precision, tp / (tp + fp), of cells (..., 4), in [0, 1]; NaN without a verdict of True."""
    tp, _, fp, _ = _columns(cells)
    return ratio(tp, tp + fp)


def f1(cells: NDArray[Any]) -> Floats:
    """F1, 2 tp / (2 tp + fn + fp), of cells (..., 4), in [0, 1]; NaN without a True from either side.

    van Rijsbergen (1979), Information Retrieval.
    """
    tp, fn, fp, _ = _columns(cells)
    return ratio(2 * tp, 2 * tp + fn + fp)


def mcc(cells: NDArray[Any]) -> Floats:
    """Matthews correlation of cells (..., 4), in [-1, 1]; NaN where a margin is 0.

    Matthews (1975), Biochim Biophys Acta 405:442.
    """
    tp, fn, fp, tn = _columns(cells)
    # Two square roots: the product of all four margins would soon exceed the exact range.
    margins = np.sqrt((tp + fn) * (fp + tn)) * np.sqrt((tp + fp) * (fn + tn))
    return np.clip(ratio(tp * tn - fn * fp, margins), -1, 1)


def tables(cells: NDArray[Any]) -> Floats:
    """Reshape cells (..., 4) into 2x2 tables (..., 2, 2): human labels in the rows, True first.

    >>> tables(np.array([1, 2, 3, 4])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    cells = np.asarray(cells, dtype=np.float64)
    return cells.reshape(*cells.shape[:-1], 2, 2)


def _margins(table: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Total, diagonal, row sums and column sums of tables (..., q, q)."""
    diagonal: Floats = np.trace(table, axis1=-2, axis2=-1)
    return table.sum(axis=(-2, -1)), diagonal, table.sum(axis=-1), table.sum(axis=-2)


def cohen_kappa(table: Floats) -> Floats:
    """Cohen's kappa of tables (..., q, q), in [-1, 1]; NaN where expected agreement is 1.

    (n D - S) / (n^2 - S) with D the diagonal and S the sum of row sum x column sum. Cohen (1960), Educ
    Psychol Meas 20:37.
    """
    n, agreements, rows, columns = _margins(table)
    by_chance = (rows * columns).sum(axis=-1)
    return ratio(n * agreements - by_chance, n * n - by_chance)


def scott_pi(table: Floats) -> Floats:
    """Scott's pi of tables (..., q, q), in [-1, 1]; NaN where expected agreement is 1.

    Computed in whole numbers up to the last division. Scott (1955), Public Opin Q 19:321.
    """
    n, agreements, rows, columns = _margins(table)
    by_chance = ((rows + columns) ** 2).sum(axis=-1)
    return ratio(4 * n * agreements - by_chance, 4 * n * n - by_chance)


def brennan_prediger(table: Floats) -> Floats:
    """Brennan-Prediger coefficient, (q po - 1) / (q - 1), of tables (..., q, q); NaN when n = 0.

    Brennan & Prediger (1981), Educ Psychol Meas 41:687.
    """
    n, agreements, _, _ = _margins(table)
    categories = table.shape[-1]
    coefficient: Floats = (categories * ratio(agreements, n) - 1) / (categories - 1)
    return coefficient


def ac1_chance(shares: Floats) -> Floats:
    """Gwet's chance agreement, sum of p (1 - p) / (q - 1), from category shares (..., q) in [0, 1].

    Gwet (2008), BJMSP 61:29.

    >>> ac1_chance(np.array([0.5, 0.5])).tolist()
    0.5
    """
    chance: Floats = (shares * (1 - shares)).sum(axis=-1) / (shares.shape[-1] - 1)
    return chance


def gwet_ac1(table: Floats) -> Floats:
    """Gwet's AC1 of tables (..., q, q), in [-1, 1]; NaN when n = 0. Gwet (2008), BJMSP 61:29."""
    n, agreements, rows, columns = _margins(table)
    chance = ac1_chance(ratio(rows + columns, 2 * n[..., np.newaxis]))
    return (ratio(agreements, n) - chance) / (1 - chance)
