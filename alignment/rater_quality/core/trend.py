"""Agreement of a rater over time, in equal parts of their answers."""

from collections.abc import Sequence

import numpy as np

from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import proportion

PARTS = 10
ANSWERS_A_PART = 10
FEWEST_PARTS = 3


def trend(agrees: Sequence[bool]) -> list[Estimate]:
    """
    Compute the share of agreeing answers by tenths, each with a Wilson interval.

    Parameters
    ----------
    agrees : one entry per answer, oldest first.

    Returns
    -------
    list of Estimate : fewer than ten parts if ten would have fewer than ten answers each; empty below 30
        answers.

    Examples
    --------
    >>> [part.value for part in trend([True] * 10 + [False] * 20)]
    [1.0, 0.0, 0.0]
    >>> trend([True] * 29)
    []
    """
    parts = min(PARTS, len(agrees) // ANSWERS_A_PART)
    if parts < FEWEST_PARTS:
        return []
    split = np.array_split(np.asarray(agrees, dtype=bool), parts)
    return [proportion(int(part.sum()), part.size, reason="") for part in split]
