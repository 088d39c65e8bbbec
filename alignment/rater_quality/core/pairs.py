"""Agreement of each pair of raters on the questions both answered."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from alignment.rater_quality.core.agreement import FEW
from alignment.rater_quality.core.answers import NA, Answers, Ints
from alignment.statistics.agreement import formulas


@dataclass(frozen=True, slots=True)
class Pair:
    """Agreement of two raters on the `n` questions both answered; undefined values are None."""

    n: int
    agreement: float | None
    kappa: float | None
    ac1: float | None

    @property
    def few(self) -> bool:
        """Whether the questions are too few for more than an indication."""
        return self.n < FEW


def rater_pairs(answers: Answers, chosen: Ints) -> list[list[Pair | None]]:
    """
    Compute the agreement of each pair of the chosen raters, symmetric; None on the diagonal.

    Parameters
    ----------
    chosen : numbers in `answers.raters`, in the order of the result.

    Examples
    --------
    >>> two = Answers(np.arange(4) // 2, np.zeros(4, int), np.arange(4) % 2, np.array([0, 0, 1, 1]))
    >>> rater_pairs(two, np.array([1, 0]))[0][1]
    Pair(n=2, agreement=1.0, kappa=1.0, ac1=1.0)
    """
    place = np.full(int(answers.raters.max(initial=-1)) + 1, -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    # Not applicable is a category of AC1 only if a rater chose it.
    categories = 3 if (answers.values == NA).any() else 2
    answers = answers.where(place[answers.raters] >= 0)
    answers = Answers(answers.chats, answers.criteria, place[answers.raters], answers.values)
    tables = pair_tables(answers, raters=len(chosen)).astype(np.float64)
    n = tables.sum(axis=(-2, -1))
    statistics = (
        formulas.ratio(np.trace(tables, axis1=-2, axis2=-1), n),
        formulas.cohen_kappa(tables),
        formulas.gwet_ac1(tables[..., :categories, :categories]),
    )
    return [
        [
            None if i == j else Pair(int(n[i, j]), *(formulas.scalar(one[i, j]) for one in statistics))
            for j in range(len(chosen))
        ]
        for i in range(len(chosen))
    ]


def pair_tables(answers: Answers, *, raters: int) -> NDArray[np.int64]:
    """
    Count the answers of each pair of raters in a 3×3 table.

    Parameters
    ----------
    raters : number of raters, above every number in `answers.raters`.

    Returns
    -------
    array, shape (raters, raters, 3, 3) : [i, j, v, w] counts the questions that i answered v and j
        answered w; on the diagonal each rater is paired with itself.

    Examples
    --------
    >>> two = Answers(np.zeros(2, int), np.zeros(2, int), np.arange(2), np.array([0, 1]))
    >>> pair_tables(two, raters=2)[0, 1].tolist()
    [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    """
    cells = answers.cells
    columns = answers.raters * 3 + answers.values
    shape = (int(cells.max(initial=-1)) + 1, 3 * raters)
    indicator = csr_array((np.ones(len(answers), dtype=np.int64), (cells, columns)), shape=shape)
    together: NDArray[np.int64] = (indicator.T @ indicator).toarray().reshape(raters, 3, raters, 3)
    return together.transpose(0, 2, 1, 3)
