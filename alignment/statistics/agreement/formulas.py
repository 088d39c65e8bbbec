"""Formulas over stacks of tables; undefined entries are NaN in here and nowhere else.

A stack is what a bootstrap makes: 2,000 tables at once. Scalars go through `Confusion` and the functions of
`two_raters`, which turn NaN into None. 2x2 cells are the last axis in the order tp, fn, fp, tn; q x q tables
are the last two axes. Counts up to 9e7 are exact, so a 0/0 is seen as such.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def checked_counts(values: ArrayLike) -> Floats:
    """Counts as floats.

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
    """Elementwise quotient, NaN where the denominator is 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    undefined = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=undefined, where=denominator != 0)
    return undefined


def scalar(value: Floats) -> float | None:
    """A single result as a plain float, None for NaN.

    >>> scalar(np.array(float("nan"))) is None
    True
    """
    number = float(value)
    return None if math.isnan(number) else number


def _columns(cells: NDArray[Any]) -> tuple[Floats, Floats, Floats, Floats]:
    tp, fn, fp, tn = np.moveaxis(np.asarray(cells, dtype=np.float64), -1, 0)
    return tp, fn, fp, tn


def accuracy(cells: NDArray[Any]) -> Floats:
    """(tp + tn) / n for cells of shape (..., 4); see `Confusion.accuracy`."""
    tp, fn, fp, tn = _columns(cells)
    return ratio(tp + tn, tp + fn + fp + tn)


def tpr(cells: NDArray[Any]) -> Floats:
    """tp / (tp + fn) for cells of shape (..., 4); see `Confusion.tpr`."""
    tp, fn, _, _ = _columns(cells)
    return ratio(tp, tp + fn)


def tnr(cells: NDArray[Any]) -> Floats:
    """tn / (tn + fp) for cells of shape (..., 4); see `Confusion.tnr`."""
    _, _, fp, tn = _columns(cells)
    return ratio(tn, tn + fp)


def balanced_accuracy(cells: NDArray[Any]) -> Floats:
    """Mean of TPR and TNR for cells of shape (..., 4); NaN where either is."""
    return (tpr(cells) + tnr(cells)) / 2


def precision(cells: NDArray[Any]) -> Floats:
    """tp / (tp + fp) for cells of shape (..., 4); see `Confusion.precision`."""
    tp, _, fp, _ = _columns(cells)
    return ratio(tp, tp + fp)


def f1(cells: NDArray[Any]) -> Floats:
    """2 tp / (2 tp + fn + fp) for cells of shape (..., 4); see `Confusion.f1`."""
    tp, fn, fp, _ = _columns(cells)
    return ratio(2 * tp, 2 * tp + fn + fp)


def mcc(cells: NDArray[Any]) -> Floats:
    """Matthews correlation for cells of shape (..., 4); see `Confusion.mcc`."""
    tp, fn, fp, tn = _columns(cells)
    # Two square roots of products: the product of all four margins would leave the exact range early.
    margins = np.sqrt((tp + fn) * (fp + tn)) * np.sqrt((tp + fp) * (fn + tn))
    return np.clip(ratio(tp * tn - fn * fp, margins), -1, 1)


def tables(cells: NDArray[Any]) -> Floats:
    """Cells of shape (..., 4) as 2x2 tables of shape (..., 2, 2), human rows, True first.

    >>> tables(np.array([1, 2, 3, 4])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    cells = np.asarray(cells, dtype=np.float64)
    return cells.reshape(*cells.shape[:-1], 2, 2)


def _margins(table: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """n, agreements, row sums, column sums."""
    diagonal: Floats = np.trace(table, axis1=-2, axis2=-1)
    return table.sum(axis=(-2, -1)), diagonal, table.sum(axis=-1), table.sum(axis=-2)


def cohen_kappa(table: Floats) -> Floats:
    """Kappa of tables (..., q, q) as (n D - S) / (n^2 - S), S = sum of row x column sums."""
    n, agreements, rows, columns = _margins(table)
    by_chance = (rows * columns).sum(axis=-1)
    return ratio(n * agreements - by_chance, n * n - by_chance)


def scott_pi(table: Floats) -> Floats:
    """Scott's pi of tables (..., q, q), in whole numbers up to the last division; see `two_raters`."""
    n, agreements, rows, columns = _margins(table)
    by_chance = ((rows + columns) ** 2).sum(axis=-1)
    return ratio(4 * n * agreements - by_chance, 4 * n * n - by_chance)


def brennan_prediger(table: Floats) -> Floats:
    """(q po - 1) / (q - 1) of tables (..., q, q); see `two_raters`."""
    n, agreements, _, _ = _margins(table)
    categories = table.shape[-1]
    coefficient: Floats = (categories * ratio(agreements, n) - 1) / (categories - 1)
    return coefficient


def ac1_chance(shares: Floats) -> Floats:
    """Gwet's chance agreement, sum of p (1 - p) over (q - 1), from category shares (..., q).

    >>> ac1_chance(np.array([0.5, 0.5])).tolist()
    0.5
    """
    chance: Floats = (shares * (1 - shares)).sum(axis=-1) / (shares.shape[-1] - 1)
    return chance


def gwet_ac1(table: Floats) -> Floats:
    """AC1 of tables (..., q, q); see `two_raters`."""
    n, agreements, rows, columns = _margins(table)
    chance = ac1_chance(ratio(rows + columns, 2 * n[..., np.newaxis]))
    return (ratio(agreements, n) - chance) / (1 - chance)
