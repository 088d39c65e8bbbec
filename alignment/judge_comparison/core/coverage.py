"""Which judges leave so much open that the others are compared on less."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLEARLY_MORE = 1.2  # times as many compared answers

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Without:
    """Judges without which clearly more is compared: `n` answers."""

    runs: tuple[int, ...]
    n: int

    def as_json(self) -> dict[str, Any]:
        """Runs by id."""
        return {"runs": list(self.runs), "n": self.n}


def answered_by(answerers: Ints, place: int) -> int:
    """How many of people's answers the judge at this place answered, too.

    >>> answered_by(np.array([5, 1, 2, 10]), 0)
    11
    """
    return int(answerers[_sets(answerers) >> place & 1 == 1].sum())


def without(answerers: Ints, *, runs: tuple[int, ...]) -> Without | None:
    """
    The fewest judges without which clearly more is compared.

    Parameters
    ----------
    answerers : people's answers by the set of judges that answered them, too: bit 0 stands for the first.
    runs : of the judges, in their order.

    Returns
    -------
    Without or None : None where no such judges leave two others to compare.

    Examples
    --------
    >>> without(np.array([0, 0, 0, 0, 0, 40, 0, 10]), runs=(7, 8, 9))
    Without(runs=(8,), n=50)
    """
    n = int(answerers[-1])
    for size in range(1, len(runs) - 1):
        found = [(_compared(answerers, left), left) for left in combinations(range(len(runs)), size)]
        most, left = max(found, key=lambda one: one[0])
        if most > n and most >= CLEARLY_MORE * n:
            return Without(tuple(runs[place] for place in left), most)
    return None


def _compared(answerers: Ints, left: tuple[int, ...]) -> int:
    """Answers that every judge answered but those at the places that are left out."""
    unasked = sum(1 << place for place in left)
    return int(answerers[_sets(answerers) | unasked == len(answerers) - 1].sum())


def _sets(answerers: Ints) -> Ints:
    return np.arange(len(answerers))
