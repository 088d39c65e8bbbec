"""Answers as parallel arrays, and the majority of the other raters."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TRUE, FALSE, NA = range(3)
TIED, ALONE = -1, -2

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """Answers as arrays of one length; each rater answers a (chat, criterion) once.

    Parameters
    ----------
    chats, criteria, raters : whole numbers from 0, in any order.
    values : TRUE, FALSE or NA.

    Examples
    --------
    >>> one = np.array([0])
    >>> len(Answers(one, one, one, np.array([TRUE])))
    1
    """

    chats: Ints
    criteria: Ints
    raters: Ints
    values: Ints

    def __len__(self) -> int:
        return len(self.values)

    @property
    def cells(self) -> Ints:
        """The (chat, criterion) of each answer, numbered from 0 without gaps."""
        width = int(self.criteria.max(initial=0)) + 1
        _, cells = np.unique(self.chats * width + self.criteria, return_inverse=True)
        numbered: Ints = cells.astype(np.int64)
        return numbered

    def where(self, chosen: NDArray[np.bool_]) -> "Answers":
        """Return the chosen answers."""
        return Answers(self.chats[chosen], self.criteria[chosen], self.raters[chosen], self.values[chosen])


def counts_of(cells: Ints, values: Ints) -> Ints:
    """Count each value by cell, shape (cells, 3).

    >>> counts_of(np.array([0, 0, 1]), np.array([TRUE, TRUE, NA])).tolist()
    [[2, 0, 0], [0, 0, 1]]
    """
    width = int(cells.max(initial=-1)) + 1
    counts: Ints = np.bincount(cells * 3 + values, minlength=3 * width).reshape(width, 3)
    return counts


def majority_of_others(answers: Answers) -> Ints:
    """Return, for each answer, the strict majority of the other raters on the same question.

    Not applicable is an answer, as in the consensus.

    Returns
    -------
    array of int, shape (answers,) : TRUE, FALSE, NA; TIED if the others have no strict majority, ALONE if
        no other rater answered.

    Examples
    --------
    >>> three = Answers(np.zeros(3, int), np.zeros(3, int), np.arange(3), np.array([TRUE, TRUE, FALSE]))
    >>> majority_of_others(three).tolist()
    [-1, -1, 0]
    """
    cells = answers.cells
    others = counts_of(cells, answers.values)[cells]
    others[np.arange(len(answers)), answers.values] -= 1
    total = others.sum(axis=1)
    strict = 2 * others.max(axis=1, initial=0) > total
    majority: Ints = np.select([total == 0, strict], [ALONE, others.argmax(axis=1)], TIED).astype(np.int64)
    return majority
