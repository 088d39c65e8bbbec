"""The change of a verdict in a try, compared with the human answer."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Change = Literal["fixed", "broken", "still_right", "still_wrong", "right", "wrong", "not_compared"]


def change(*, human: bool | None, before: bool | None, after: bool | None) -> Change:
    """Return the change of one verdict; None is anything but True or False.

    Without a human answer or a new verdict the result is `not_compared`; without a verdict before, `right` or
    `wrong`.

    >>> change(human=True, before=False, after=True), change(human=True, before=None, after=True)
    ('fixed', 'right')
    """
    if human is None or after is None:
        return "not_compared"
    right = after is human
    if before is None:
        return "right" if right else "wrong"
    if before is human:
        return "still_right" if right else "broken"
    return "fixed" if right else "still_wrong"


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of fixed and broken verdicts among the `of` chats with a verdict before and after."""

    fixed: int
    broken: int
    of: int


def tally(changes: Iterable[Change]) -> Tally:
    """Count the changes of chats with a verdict before and after.

    >>> tally(["fixed", "still_wrong", "not_compared", "right"])
    Tally(fixed=1, broken=0, of=2)
    """
    counts = Counter(changes)
    pairs = sum(counts[name] for name in ("fixed", "broken", "still_right", "still_wrong"))
    return Tally(counts["fixed"], counts["broken"], pairs)
