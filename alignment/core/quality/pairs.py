"""Every rater against every other, on the questions both answered."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from alignment.core.quality.answers import Answers


def pair_tables(answers: Answers, *, raters: int) -> NDArray[np.int64]:
    """
    The 3×3 table of answers of each pair of raters.

    Parameters
    ----------
    raters : how many there are; numbers in `answers.raters` are below.

    Returns
    -------
    array, shape (raters, raters, 3, 3) : [i, j, v, w] counts the questions that i answered v and j
        answered w; the diagonal pairs are a rater with themselves.

    Examples
    --------
    >>> two = Answers(np.zeros(2, int), np.zeros(2, int), np.arange(2), np.array([0, 1]))
    >>> pair_tables(two, raters=2)[0, 1].tolist()
    [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    """
    cells = answers.cells
    columns = answers.raters * 3 + answers.values
    shape = (int(cells.max(initial=-1)) + 1, 3 * raters)
    given = csr_array((np.ones(len(answers), dtype=np.int64), (cells, columns)), shape=shape)
    together: NDArray[np.int64] = (given.T @ given).toarray().reshape(raters, 3, raters, 3)
    return together.transpose(0, 2, 1, 3)
