"""Judges with so few verdicts that they make the comparison of the others smaller."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLEARLY_MORE = 1.2  # times as many compared answers

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Exclusion:
    """Judges whose exclusion makes the comparison clearly larger: `n` answers."""

    runs: tuple[int, ...]
    n: int

    def as_json(self) -> dict[str, Any]:
        """Run ids and the number of answers."""
        return {"runs": list(self.runs), "n": self.n}


def answered_by(answerers: Ints, place: int) -> int:
    """Count the human answers on which the judge at this index has a verdict too.

    >>> answered_by(np.array([5, 1, 2, 10]), 0)
    11
    """
    return int(answerers[_sets(answerers) >> place & 1 == 1].sum())


def suggested_exclusion(answerers: Ints, *, runs: tuple[int, ...]) -> Exclusion | None:
    """
    Return the fewest judges whose exclusion makes the comparison clearly larger.

    Parameters
    ----------
    answerers : human answers by the set of judges that answered too, shape (2**judges,); bit 0 is the first.
    runs : run ids of the judges, in their order.

    Returns
    -------
    Exclusion or None : None if there are no such judges, or fewer than two others would remain.

    Examples
    --------
    >>> suggested_exclusion(np.array([0, 0, 0, 0, 0, 40, 0, 10]), runs=(7, 8, 9))
    Exclusion(runs=(8,), n=50)
    """
    n = int(answerers[-1])
    for size in range(1, len(runs) - 1):
        options = [(_compared(answerers, places), places) for places in combinations(range(len(runs)), size)]
        most, excluded = max(options, key=lambda one: one[0])
        if most > n and most >= CLEARLY_MORE * n:
            return Exclusion(tuple(runs[place] for place in excluded), most)
    return None


def _compared(answerers: Ints, excluded: tuple[int, ...]) -> int:
    """Count the answers that every judge gave, apart from the excluded places."""
    bits = sum(1 << place for place in excluded)
    return int(answerers[_sets(answerers) | bits == len(answerers) - 1].sum())


def _sets(answerers: Ints) -> Ints:
    return np.arange(len(answerers))
