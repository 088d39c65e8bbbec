"""Dawid–Skene consensus: which answer is likely, when each rater errs in their own way.

Code of ours: crowd-kit, the kept library, needs transformers, nltk and pyarrow (775 MB) for these 30 lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.special import logsumexp

FEWEST_RATERS = 3  # with two, who of them errs cannot be told
ITERATIONS = 1000
TOLERANCE = 1e-7

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class TooFewError(ValueError):
    """The answers cannot tell the raters' errors from the truth; the message says why."""


@dataclass(frozen=True)
class DawidSkene:
    """
    What EM came to.

    Attributes
    ----------
    shares : shape (categories,), how common each is in truth.
    posteriors : shape (items, categories), each row sums to 1.
    confusion : shape (raters, categories, categories), P(answer | truth), truth in rows; NaN in a row where
        the rater has answered nothing that may be of that category.
    iterations, converged : steps taken, and whether the posteriors stood still at the end.
    log_likelihood : of the answers.
    answered : shape (raters,), answers of each.
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
        """Whether other names for the classes would agree with more answers: EM does not know their names."""
        best = self.expected[linear_sum_assignment(self.expected, maximize=True)].sum()
        return bool(best > np.trace(self.expected) + 0.5)  # by less than one answer is a tie

    def right(self, rater: int, category: int) -> float | None:
        """How often they answer `category` where it is true: sensitivity for True, specificity for False."""
        value = float(self.confusion[rater, category, category])
        return None if np.isnan(value) else value


@dataclass(frozen=True)
class _Answers:
    """How often each rater gave each answer on an item; they may answer an item more than once.

    An item stands for all that were answered alike: 10,000 chats of three raters are a few dozen items.
    """

    votes: csr_array  # shape (items, raters * categories)
    weights: Floats  # shape (items,), how many are alike
    categories: int

    def expected(self, posteriors: Floats) -> Floats:
        """Expected number of answers, shape (raters, categories, categories), truth in rows."""
        by_answer = self.votes.T @ (posteriors * self.weights[:, None])
        counts: Floats = by_answer.reshape(-1, self.categories, self.categories).swapaxes(1, 2)
        return counts

    def joint(self, shares: Floats, confusion: Floats) -> Floats:
        """log P(truth and all answers) by item, shape (items, categories)."""
        with np.errstate(divide="ignore"):  # NB: log 0 = -inf is meant: that category is impossible
            chances = np.log(np.nan_to_num(confusion)).swapaxes(1, 2).reshape(-1, self.categories)
            joint: Floats = np.log(shares) + self.votes @ chances
        return joint

    def vote_shares(self) -> Floats:
        """Where EM starts: the share of each category among the item's answers."""
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
    Maximum likelihood by EM from the vote shares, so the same answers always give the same result.

    Parameters
    ----------
    items, raters, answers : whole numbers from 0, all of one length, one entry an answer; each item and each
        rater up to the highest number has at least one. A category that nobody answered has share 0.
    categories : how many categories there are.
    iterations, tolerance : stop after so many steps, or when no posterior moves by more.

    Returns
    -------
    DawidSkene; see there. Without convergence the last step's numbers.

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
    >>> found = dawid_skene(items, raters, [1, 1, 0, 0, 0, 0, 1, 1, 1], categories=2)
    >>> found.posteriors.argmax(axis=1).tolist(), found.converged
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
    """P(answer | truth): each row by its sum."""
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
    """Items answered alike by the same raters as one, and the place of each item among those."""
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
    """Every number from 0 to the highest must occur."""
    if numbers.min() < 0 or not np.bincount(numbers).all():
        raise ValueError(f"{name} numbers must run from 0 without a gap")


def numbered(names: Sequence[int]) -> tuple[list[int], Whole]:
    """
    The different names in order, and the place of each entry's name among them.

    Examples
    --------
    >>> numbered([7, 3, 7])
    ([3, 7], array([1, 0, 1]))
    """
    different, places = np.unique(np.asarray(names, dtype=np.int64), return_inverse=True)
    return [int(name) for name in different], places
