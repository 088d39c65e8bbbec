"""Agreement among any number of raters, from the number of answers per item and category.

Every function takes counts of shape (items, categories), e.g. (True, False, not applicable). No statistic
depends on which rater gave which answer, so 184,500 labels on 6,150 chats are 6,150 short rows. With
`weights`, only distinct rows are needed.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from alignment.statistics.agreement import formulas
from alignment.statistics.agreement.confusion import Confusion
from alignment.statistics.agreement.two_raters import GwetAC1, t_interval
from alignment.statistics.estimates import Estimate

NO_OVERLAP = "no item with two raters"


@dataclass(frozen=True)
class _Rated:
    """Rows of rated items, and the number of items that have each row."""

    counts: formulas.Floats
    weights: formulas.Floats

    @property
    def items(self) -> float:
        return float(self.weights.sum())

    @property
    def pair_agreement(self) -> formulas.Floats:
        """Share of rater pairs that agree, by row; NaN without a pair."""
        raters = self.counts.sum(axis=1)
        pairs = np.where(raters >= 2, raters * (raters - 1), 0)
        return formulas.ratio((self.counts * (self.counts - 1)).sum(axis=1), pairs)

    @property
    def observed(self) -> float | None:
        """Mean pair agreement over the items that have a pair."""
        agreement = self.pair_agreement
        paired = ~np.isnan(agreement)
        if not paired.any():
            return None
        return float(np.average(agreement[paired], weights=self.weights[paired]))

    @property
    def shares(self) -> formulas.Floats:
        """Mean over items of each category's share; every item has the same weight."""
        by_item = self.counts / self.counts.sum(axis=1, keepdims=True)
        shares: formulas.Floats = self.weights @ by_item / self.items
        return shares


def _rated(counts: ArrayLike, weights: ArrayLike | None) -> _Rated:
    matrix = formulas.checked_counts(counts)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise ValueError(f"needs counts of shape (items, 2 or more categories), not {matrix.shape}")
    each = np.ones(len(matrix)) if weights is None else np.asarray(weights, dtype=np.float64)
    if each.shape != (len(matrix),) or (each <= 0).any():
        raise ValueError("needs one positive weight per row")
    labelled = matrix.sum(axis=1) > 0
    return _Rated(matrix[labelled], each[labelled])


def percent_agreement(counts: ArrayLike, *, weights: ArrayLike | None = None) -> float | None:
    """Share of rater pairs that agree, as the mean over items with two or more raters.

    Parameters
    ----------
    counts : shape (items, categories).
    weights : shape (items,), number of items with each row; None: 1 each.

    Returns
    -------
    float or None : in [0, 1]; None when no item has two raters.

    Raises
    ------
    ValueError : counts of another shape, fewer than two categories, or a weight that is not positive.

    Examples
    --------
    >>> percent_agreement([[3, 0], [2, 2], [1, 0]])
    0.6666666666666666
    """
    return _rated(counts, weights).observed


def fleiss_kappa(counts: ArrayLike, *, weights: ArrayLike | None = None) -> float | None:
    """Fleiss' kappa, (pa - pe) / (1 - pe), pe = sum of squared category shares.

    The number of raters may differ between items.

    Parameters
    ----------
    counts : shape (items, categories).
    weights : shape (items,), number of items with each row; None: 1 each.

    Returns
    -------
    float or None : in [-1, 1]; None when no item has two raters or all answers are of one category.

    Raises
    ------
    ValueError : counts of another shape, fewer than two categories, or a weight that is not positive.

    Notes
    -----
    Fleiss (1971), Psychol Bull 76:378; with unequal numbers Gwet (2014), Handbook of Inter-Rater Reliability:
    pa over items with two or more raters, shares as the mean over all rated items of each item's own shares.

    Examples
    --------
    >>> fleiss_kappa([[7, 0], [0, 7]])
    1.0
    >>> fleiss_kappa([[3, 0], [2, 0]]) is None
    True
    """
    rated = _rated(counts, weights)
    observed = rated.observed
    if observed is None or np.count_nonzero(rated.shares) == 1:
        return None
    chance = float((rated.shares**2).sum())
    return (observed - chance) / (1 - chance)


def gwet_ac1_raters(counts: ArrayLike, *, weights: ArrayLike | None = None) -> GwetAC1:
    """Gwet's AC1 of any number of raters, with the 95% t interval of the subject form.

    Parameters
    ----------
    counts : shape (items, categories). Categories without an answer are excluded, as irrCAC does.
    weights : shape (items,), number of items with each row; None: 1 each.

    Returns
    -------
    GwetAC1 : in [-1, 1]; None when no item has two raters. With one class only, 1 without an interval.

    Raises
    ------
    ValueError : counts of another shape, fewer than two categories, or a weight that is not positive.

    Notes
    -----
    Gwet (2008), BJMSP 61:29; pa over items with two or more raters, shares over all rated items, variance
    over n (n - 1), n - 1 degrees of freedom, clipped to [-1, 1].

    Examples
    --------
    >>> round(gwet_ac1_raters([[3, 0], [3, 0], [2, 1], [0, 3]]).estimate.value, 4)
    0.7
    """
    rated = _rated(counts, weights)
    observed = rated.observed
    if observed is None:
        return GwetAC1(Estimate(None, reason=NO_OVERLAP), None)
    used = _Rated(rated.counts[:, rated.counts.any(axis=0)], rated.weights)
    if used.counts.shape[1] == 1:
        return GwetAC1(Estimate(1.0, reason="one class only"), None)
    chance = float(formulas.ac1_chance(used.shares))
    value = (observed - chance) / (1 - chance)
    if used.items < 2:
        return GwetAC1(Estimate(value, reason="one item only"), None)
    error = _subject_error(used, chance=chance, ac1=value)
    return GwetAC1(Estimate(value, t_interval(value, error, degrees=round(used.items) - 1)), error)


def _subject_error(rated: _Rated, *, chance: float, ac1: float) -> float:
    """Standard error of AC1, from each item's influence on it."""
    counts, weights, items = rated.counts, rated.weights, rated.items
    agreement = rated.pair_agreement
    paired = ~np.isnan(agreement)
    gain = np.where(paired, agreement - chance, 0) / (1 - chance) * items / weights[paired].sum()
    own_chance = (counts @ (1 - rated.shares)) / counts.sum(axis=1) / (counts.shape[1] - 1)
    influence = gain - 2 * (1 - ac1) * (own_chance - chance) / (1 - chance)
    return math.sqrt(float(weights @ (influence - ac1) ** 2) / (items * (items - 1)))


def ac1_parts(counts: ArrayLike) -> formulas.Floats:
    """Contribution of each item to Gwet's AC1: pair agreement, 1 for an item with pairs, 1, own shares.

    Parameters
    ----------
    counts : shape (items, categories), at least one answer per item.

    Returns
    -------
    array, shape (items, 3 + categories) : `ac1_of_sums` takes its sum over items, or over resampled items.

    Notes
    -----
    Gwet (2008), BJMSP 61:29; see `gwet_ac1_raters`.

    Examples
    --------
    >>> ac1_parts([[2, 0], [1, 0]]).tolist()
    [[1.0, 1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0]]
    """
    matrix = np.asarray(counts, dtype=np.float64)
    rated = _Rated(matrix, np.ones(len(matrix)))
    agreement = rated.pair_agreement
    pairs = ~np.isnan(agreement)
    shares = matrix / matrix.sum(axis=1, keepdims=True)
    return np.column_stack([np.where(pairs, agreement, 0), pairs, np.ones(len(matrix)), shares])


def ac1_of_sums(sums: formulas.Floats) -> formulas.Floats:
    """Gwet's AC1 from summed `ac1_parts` (..., 3 + categories in use); shape (...). NaN without a pair.

    Gwet (2008), BJMSP 61:29.

    >>> ac1_of_sums(ac1_parts([[3, 0], [3, 0], [2, 1], [0, 3]]).sum(axis=0)).round(4).tolist()
    0.7
    """
    observed = formulas.ratio(sums[..., 0], sums[..., 1])
    chance = formulas.ac1_chance(formulas.ratio(sums[..., 3:], sums[..., 2, np.newaxis]))
    return (observed - chance) / (1 - chance)


def alpha_parts(counts: ArrayLike) -> formulas.Floats:
    """Contribution of each item to Krippendorff's alpha: its disagreement, then its counts by category.

    Parameters
    ----------
    counts : shape (items, categories).

    Returns
    -------
    array, shape (items, 1 + categories) : all 0 for items with fewer than two raters. `alpha_of_sums` takes
        its sum over items, or over resampled items.

    Notes
    -----
    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability.

    Examples
    --------
    >>> alpha_parts([[2, 1], [1, 0]]).tolist()
    [[2.0, 2.0, 1.0], [0.0, 0.0, 0.0]]
    """
    matrix = np.asarray(counts, dtype=np.float64)
    raters = matrix.sum(axis=1)
    disagreement = formulas.ratio(raters**2 - (matrix**2).sum(axis=1), np.maximum(raters - 1, 1))
    parts = np.column_stack([disagreement, matrix])
    parts[raters < 2] = 0
    return parts


def alpha_of_sums(sums: formulas.Floats) -> formulas.Floats:
    """Krippendorff's nominal alpha from summed `alpha_parts` (..., 1 + categories); shape (...).

    At most 1. NaN where expected disagreement is 0. Krippendorff (2011).

    >>> alpha_of_sums(np.array([[0.0, 4.0, 2.0], [0.0, 6.0, 0.0]])).tolist()
    [1.0, nan]
    """
    disagreement, totals = sums[..., 0], sums[..., 1:]
    ratings = totals.sum(axis=-1)
    expected = ratings**2 - (totals**2).sum(axis=-1)
    return 1 - formulas.ratio((ratings - 1) * disagreement, expected)


def krippendorff_alpha(counts: ArrayLike, *, weights: ArrayLike | None = None) -> float | None:
    """Krippendorff's alpha for nominal data, 1 - observed / expected disagreement.

    Parameters
    ----------
    counts : shape (items, categories). Items with fewer than two raters are excluded.
    weights : shape (items,), number of items with each row; None: 1 each.

    Returns
    -------
    float or None : at most 1; None when no item has two raters, or when all their answers are of one
        category.

    Raises
    ------
    ValueError : counts of another shape, fewer than two categories, or a weight that is not positive.

    Notes
    -----
    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability.

    Examples
    --------
    >>> round(krippendorff_alpha([[3, 0], [2, 1], [0, 3]]), 4)
    0.6
    """
    rated = _rated(counts, weights)
    return formulas.scalar(alpha_of_sums(rated.weights @ alpha_parts(rated.counts)))


def ceiling_parts(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Count, by item, each rater's answer (columns) against the strict majority of the others (rows).

    Parameters
    ----------
    counts : shape (items, categories): True, False, then any others (not applicable). Other categories count
        towards the number of other raters, but are not compared.

    Returns
    -------
    array of int, shape (items, 4) : tp, fn, fp, tn.

    Notes
    -----
    Own definition, see docs/understand/statistics.md.

    Examples
    --------
    >>> ceiling_parts(np.array([[3, 1, 0]])).tolist()
    [[3, 1, 0, 0]]
    """
    answers = np.asarray(counts, dtype=np.int64)
    true, false = answers[:, 0], answers[:, 1]
    others = answers.sum(axis=1) - 1
    return np.column_stack(
        [
            np.where(2 * (true - 1) > others, true, 0),
            np.where((2 * true > others) & (others > 0), false, 0),
            np.where((2 * false > others) & (others > 0), true, 0),
            np.where(2 * (false - 1) > others, false, 0),
        ]
    )


def leave_one_rater_out(
    counts: NDArray[np.integer], *, weights: NDArray[np.integer] | None = None
) -> Confusion:
    """Human ceiling: each rater against the strict majority of the others, pooled over raters and items.

    Compare the judge's `balanced_accuracy` with this one. Counts per item suffice: raters of an item who gave
    the same answer are compared with the same others.

    Parameters
    ----------
    counts : shape (items, categories): True, False, then not applicable.
    weights : shape (items,), number of items with each row; None: 1 each.

    Returns
    -------
    Confusion : rows are the majority of the others, columns the single rater. Excludes ties among the others,
        a majority of not applicable, and raters who answered not applicable. All 0 with one rater.

    Notes
    -----
    See `ceiling_parts`.

    Examples
    --------
    >>> leave_one_rater_out(np.array([[3, 0, 0], [2, 1, 0], [0, 3, 0], [1, 0, 0]]))
    Confusion(tp=3, fn=1, fp=0, tn=3)
    """
    parts = ceiling_parts(counts)
    tp, fn, fp, tn = (parts.sum(axis=0) if weights is None else weights @ parts).tolist()
    return Confusion(tp, fn, fp, tn)
