"""Dawid–Skene consensus: the likely answers, given each rater's own error rates.

Own implementation: crowd-kit, the maintained library, needs transformers, nltk and pyarrow (775 MB).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp

FEWEST_RATERS = 3  # with two raters, their errors cannot be told apart
ITERATIONS = 1000
TOLERANCE = 1e-7

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class TooFewError(ValueError):
    """The answers do not identify the raters' errors; the message says why."""


@dataclass(frozen=True)
class DawidSkene:
    """
    The result of EM.

    Attributes
    ----------
    shares : shape (categories,), estimated prevalence.
    posteriors : shape (items, categories), each row sums to 1.
    confusion : shape (raters, categories, categories), P(answer | truth), truth in rows; NaN in a row where
        the rater answered no item that may be of that category.
    iterations, converged : number of steps, and whether the posteriors converged.
    log_likelihood : of the answers.
    answered : shape (raters,), number of answers of each.
    expected : shape (categories, categories), expected number of answers (columns) by truth (rows).
    """

    shares: Floats
    posteriors: Floats
    confusion: Floats
    iterations: int
    converged: bool
    log_likelihood: float
    answered: Floats
    expected: Floats

    @property
    def switched(self) -> bool:
        """Whether swapped class names would agree with more answers: EM does not know the names."""
        from scipy.optimize import linear_sum_assignment  # here: the start of the web server does not wait

        best = self.expected[linear_sum_assignment(self.expected, maximize=True)].sum()
        return bool(best > np.trace(self.expected) + 0.5)  # by less than one answer is a tie

    def right(self, rater: int, category: int) -> float | None:
        """Return P(answer `category` | truth `category`): sensitivity for True, specificity for False."""
        value = float(self.confusion[rater, category, category])
        return None if np.isnan(value) else value


@dataclass(frozen=True)
class _Answers:
    """Counts of each rater's answers by item; a rater may answer an item more than once.

    An item represents all chats with equal answers: 10,000 chats of three raters are a few dozen items.
    """

    votes: csr_array  # shape (items, raters * categories)
    weights: Floats  # shape (items,), number of equal items
    categories: int

    def expected(self, posteriors: Floats) -> Floats:
        """Return expected numbers of answers, shape (raters, categories, categories), truth in rows."""
        by_answer = self.votes.T @ (posteriors * self.weights[:, None])
        counts: Floats = by_answer.reshape(-1, self.categories, self.categories).swapaxes(1, 2)
        return counts

    def joint(self, shares: Floats, confusion: Floats) -> Floats:
        """Return log P(truth and all answers) by item, shape (items, categories)."""
        with np.errstate(divide="ignore"):  # NB: log 0 = -inf is intended: the category is impossible
            chances = np.log(np.nan_to_num(confusion)).swapaxes(1, 2).reshape(-1, self.categories)
            joint: Floats = np.log(shares) + self.votes @ chances
        return joint

    def vote_shares(self) -> Floats:
        """Return the start of EM: the share of each category among the item's answers."""
        raters = self.votes.shape[1] // self.categories
        votes = self.votes @ np.tile(np.eye(self.categories), (raters, 1))
        shares: Floats = votes / votes.sum(axis=1, keepdims=True)
        return shares


def dawid_skene(
    items: ArrayLike,
    raters: ArrayLike,
    answers: ArrayLike,
    *,
    categories: int,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> DawidSkene:
    """
    Estimate by EM from the vote shares; the same answers always give the same result.

    Parameters
    ----------
    items, raters, answers : whole numbers from 0, same length, one entry per answer; each item and each
        rater up to the highest number has at least one. An unused category has share 0.
    categories : number of categories.
    iterations, tolerance : stop after this many steps, or when no posterior changes by more.

    Returns
    -------
    DawidSkene; without convergence, the last step's numbers.

    Raises
    ------
    TooFewError : fewer than three raters, or no item with answers of two.
    ValueError : arrays of different lengths, gaps in their numbers, an answer that is no category.

    Notes
    -----
    Dawid, A. P. and Skene, A. M. (1979), Maximum likelihood estimation of observer error-rates using the EM
    algorithm, Applied Statistics 28:20-28.

    Examples
    --------
    >>> items, raters = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2, 0, 1, 2, 0, 1, 2]
    >>> result = dawid_skene(items, raters, [1, 1, 0, 0, 0, 0, 1, 1, 1], categories=2)
    >>> result.posteriors.argmax(axis=1).tolist(), result.converged
    ([1, 0, 1], True)
    """
    item, rater, answer = _checked(items, raters, answers, categories)
    given, places = _folded(item, rater * categories + answer, categories)
    posteriors = given.vote_shares()
    moved, step = np.inf, 0
    while moved > tolerance and step < iterations:
        shares = given.weights @ posteriors / given.weights.sum()
        expected = given.expected(posteriors)
        confusion = _by_row(expected)
        joint = given.joint(shares, confusion)
        evidence = logsumexp(joint, axis=1, keepdims=True)
        before, posteriors = posteriors, np.exp(joint - evidence)
        moved, step = float(np.abs(posteriors - before).max()), step + 1
    return DawidSkene(
        shares=shares,
        posteriors=posteriors[places],
        confusion=confusion,
        iterations=step,
        converged=moved <= tolerance,
        log_likelihood=float(given.weights @ evidence[:, 0]),
        answered=np.bincount(rater).astype(np.float64),
        expected=expected.sum(axis=0),
    )


def _by_row(expected: Floats) -> Floats:
    """Normalise each row: P(answer | truth)."""
    totals = expected.sum(axis=2, keepdims=True)
    chances: Floats = np.divide(expected, totals, out=np.full_like(expected, np.nan), where=totals > 0)
    return chances


def _checked(
    items: ArrayLike, raters: ArrayLike, answers: ArrayLike, categories: int
) -> tuple[Whole, Whole, Whole]:
    item, rater, answer = (np.asarray(column, dtype=np.int64) for column in (items, raters, answers))
    if not item.shape == rater.shape == answer.shape or item.ndim != 1:
        raise ValueError("needs one item, one rater and one answer in each place")
    if not item.size:
        raise TooFewError("no answers")
    if answer.min() < 0 or answer.max() >= categories:
        raise ValueError(f"an answer is none of the {categories} categories")
    _check_numbers("item", item)
    _check_numbers("rater", rater)
    if rater.max() + 1 < FEWEST_RATERS:
        raise TooFewError(f"fewer than {FEWEST_RATERS} raters")
    pairs = np.unique(np.stack([item, rater]), axis=1)
    if np.bincount(pairs[0]).max() < 2:
        raise TooFewError("no item has answers of two raters")
    return item, rater, answer


def _folded(item: Whole, code: Whole, categories: int) -> tuple[_Answers, Whole]:
    """Merge items with equal answers by the same raters; also return each item's index."""
    order = np.lexsort((code, item))
    item, code = item[order], code[order]
    sizes = np.bincount(item)
    column = np.arange(len(item)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    patterns = np.full((len(sizes), sizes.max()), -1)
    patterns[item, column] = code
    different, places, weights = np.unique(patterns, axis=0, return_inverse=True, return_counts=True)
    row, column = np.nonzero(different >= 0)
    width = (code.max() // categories + 1) * categories
    votes = csr_array((np.ones(len(row)), (row, different[row, column])), shape=(len(different), int(width)))
    return _Answers(votes, weights.astype(np.float64), categories), places.reshape(-1)


def _check_numbers(name: str, numbers: Whole) -> None:
    """Raise ValueError unless every number from 0 to the highest occurs."""
    if numbers.min() < 0 or not np.bincount(numbers).all():
        raise ValueError(f"{name} numbers must run from 0 without a gap")


def numbered(names: Sequence[int]) -> tuple[list[int], Whole]:
    """
    Return the distinct names in order and the index of each entry's name.

    Examples
    --------
    >>> numbered([7, 3, 7])
    ([3, 7], array([1, 0, 1]))
    """
    different, places = np.unique(np.asarray(names, dtype=np.int64), return_inverse=True)
    return [int(name) for name in different], places
