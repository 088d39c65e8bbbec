"""How a rater's agreement went over time, in parts of their own answers."""

from collections.abc import Sequence

import numpy as np

from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import proportion

PARTS = 10
ANSWERS_A_PART = 10
FEWEST_PARTS = 3


def course(agrees: Sequence[bool]) -> list[Estimate]:
    """
    The share of agreeing answers by tenths, each with its Wilson interval.

    Parameters
    ----------
    agrees : one entry an answer, oldest first.

    Returns
    -------
    Fewer parts than ten where ten would hold fewer than ten answers each; none below 30 answers.

    Examples
    --------
    >>> [part.value for part in course([True] * 10 + [False] * 20)]
    [1.0, 0.0, 0.0]
    >>> course([True] * 29)
    []
    """
    parts = min(PARTS, len(agrees) // ANSWERS_A_PART)
    if parts < FEWEST_PARTS:
        return []
    split = np.array_split(np.asarray(agrees, dtype=bool), parts)
    return [proportion(int(part.sum()), part.size, reason="") for part in split]
