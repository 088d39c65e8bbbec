"""Dawid–Skene consensus: which answer is likely, when each rater errs in their own way.

Code of ours: crowd-kit, the kept library, needs transformers, nltk and pyarrow (775 MB) for these 30 lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
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
    """One row an answer; a rater may answer an item more than once.

    An item stands for all that were answered alike: 10,000 chats of three raters are a few dozen items.
    """

    item: Whole
    rater: Whole
    answer: Whole
    weights: Floats  # shape (items,), how many are alike
    raters: int
    categories: int

    def expected(self, posteriors: Floats) -> Floats:
        """Expected number of answers, shape (raters, categories, categories), truth in rows."""
        counts = np.zeros((self.raters, self.categories, self.categories))
        by_answer = counts.swapaxes(1, 2)  # a view
        np.add.at(by_answer, (self.rater, self.answer), (posteriors * self.weights[:, None])[self.item])
        return counts

    def joint(self, shares: Floats, confusion: Floats) -> Floats:
        """log P(truth and all answers) by item, shape (items, categories)."""
        with np.errstate(divide="ignore"):  # NB: log 0 = -inf is meant: that category is impossible
            chances = np.log(np.nan_to_num(confusion))
            joint = np.tile(np.log(shares), (len(self.weights), 1))
        np.add.at(joint, self.item, chances[self.rater, :, self.answer])
        return joint

    def vote_shares(self) -> Floats:
        """Where EM starts: the share of each category among the item's answers."""
        votes = np.zeros((len(self.weights), self.categories))
        np.add.at(votes, (self.item, self.answer), 1.0)
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
    everything = _checked(items, raters, answers, categories)
    given, places = _folded(everything)
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
        answered=np.bincount(everything.rater).astype(np.float64),
        expected=expected.sum(axis=0),
    )


def _by_row(expected: Floats) -> Floats:
    """P(answer | truth): each row by its sum."""
    totals = expected.sum(axis=2, keepdims=True)
    chances: Floats = np.divide(expected, totals, out=np.full_like(expected, np.nan), where=totals > 0)
    return chances


def _checked(items: ArrayLike, raters: ArrayLike, answers: ArrayLike, categories: int) -> _Answers:
    item, rater, answer = (np.asarray(column, dtype=np.int64) for column in (items, raters, answers))
    if not item.shape == rater.shape == answer.shape or item.ndim != 1:
        raise ValueError("needs one item, one rater and one answer in each place")
    if not item.size:
        raise TooFewError("no answers")
    if answer.min() < 0 or answer.max() >= categories:
        raise ValueError(f"an answer is none of the {categories} categories")
    sizes = _size("item", item), _size("rater", rater)
    if sizes[1] < FEWEST_RATERS:
        raise TooFewError(f"fewer than {FEWEST_RATERS} raters")
    pairs = np.unique(np.stack([item, rater]), axis=1)
    if np.bincount(pairs[0]).max() < 2:
        raise TooFewError("no item has answers of two raters")
    return _Answers(item, rater, answer, np.ones(sizes[0]), sizes[1], categories)


def _folded(given: _Answers) -> tuple[_Answers, Whole]:
    """Items answered alike by the same raters as one, and the place of each item among those."""
    codes = given.rater * given.categories + given.answer
    order = np.lexsort((codes, given.item))
    item, code = given.item[order], codes[order]
    sizes = np.bincount(item)
    column = np.arange(len(item)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    patterns = np.full((len(sizes), sizes.max()), -1)
    patterns[item, column] = code
    different, places, weights = np.unique(patterns, axis=0, return_inverse=True, return_counts=True)
    row, column = np.nonzero(different >= 0)
    rater, answer = np.divmod(different[row, column], given.categories)
    folded = _Answers(row, rater, answer, weights.astype(np.float64), given.raters, given.categories)
    return folded, places.reshape(-1)


def _size(name: str, numbers: Whole) -> int:
    """How many there are, when every number from 0 to the highest occurs."""
    if numbers.min() < 0 or not np.bincount(numbers).all():
        raise ValueError(f"{name} numbers must run from 0 without a gap")
    return int(numbers.max()) + 1


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
