"""What a tried prompt made of a verdict, beside people's answer."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Change = Literal["fixed", "broken", "still_right", "still_wrong", "right", "wrong", "not_compared"]


def change(*, people: bool | None, before: bool | None, after: bool | None) -> Change:
    """What happened to one verdict; None is everything but a True or False.

    Without an answer of people or of the draft there is nothing to compare; without one before, the draft is
    right or wrong.

    >>> change(people=True, before=False, after=True), change(people=True, before=None, after=True)
    ('fixed', 'right')
    """
    if people is None or after is None:
        return "not_compared"
    right = after is people
    if before is None:
        return "right" if right else "wrong"
    if before is people:
        return "still_right" if right else "broken"
    return "fixed" if right else "still_wrong"


@dataclass(frozen=True, slots=True)
class Tally:
    """How many verdicts were fixed and broken among `of` that stand before and after."""

    fixed: int
    broken: int
    of: int


def tally(changes: Iterable[Change]) -> Tally:
    """Count the changes; what has no pair is left out.

    >>> tally(["fixed", "still_wrong", "not_compared", "right"])
    Tally(fixed=1, broken=0, of=2)
    """
    counts = Counter(changes)
    pairs = sum(counts[name] for name in ("fixed", "broken", "still_right", "still_wrong"))
    return Tally(counts["fixed"], counts["broken"], pairs)
