"""Verdicts that differ between two runs over the same chats."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes, HumanCode, JudgeCode


class Flip(StrEnum):
    """How the verdict on a chat changed from the first run to the second."""

    FIXED = "fixed"
    BROKEN = "broken"
    OTHER = "other"
    GAINED = "gained"
    LOST = "lost"

    @property
    def meaning(self) -> str:
        """What it says about the second run."""
        return MEANINGS[self]


MEANINGS: Mapping[Flip, str] = MappingProxyType(
    {
        Flip.FIXED: "wrong before, right now",
        Flip.BROKEN: "right before, wrong now",
        Flip.OTHER: "changed, without a True or False of the raters, or by not applicable",
        Flip.GAINED: "no verdict before, one now",
        Flip.LOST: "a verdict before, none now",
    }
)
# Both runs have a verdict, and it differs.
FLIPPED = (Flip.FIXED, Flip.BROKEN, Flip.OTHER)


@dataclass(frozen=True, slots=True)
class Flips:
    """Positions of the chats by flip, and the number of chats on which both runs have a verdict."""

    both: int
    places: Mapping[Flip, NDArray[np.intp]]


def flips(human: Codes, before: Codes, after: Codes) -> Flips:
    """Compare two runs on one criterion.

    Parameters
    ----------
    human : HumanCode by chat, shape (chats,).
    before, after : JudgeCode by chat of the two runs, shape (chats,).

    Examples
    --------
    >>> human = np.array([0, 0, 1, 4, 0])
    >>> found = flips(human, np.array([1, 0, 1, 0, 3]), np.array([0, 1, 1, 1, 0]))
    >>> found.both, {flip.value: places.tolist() for flip, places in found.places.items()}
    (4, {'fixed': [0], 'broken': [1], 'other': [3], 'gained': [4], 'lost': []})
    """
    answered_before, answered = before <= JudgeCode.NA, after <= JudgeCode.NA
    both = answered_before & answered
    changed = both & (before != after)
    compared = changed & (human <= HumanCode.FALSE)
    fixed, broken = compared & (after == human), compared & (before == human)
    masks = {
        Flip.FIXED: fixed,
        Flip.BROKEN: broken,
        Flip.OTHER: changed & ~fixed & ~broken,
        Flip.GAINED: answered & ~answered_before,
        Flip.LOST: answered_before & ~answered,
    }
    return Flips(int(both.sum()), {flip: np.flatnonzero(mask) for flip, mask in masks.items()})
