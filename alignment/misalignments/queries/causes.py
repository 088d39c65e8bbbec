"""Why people and the judge differ, by criterion: what to refine."""

from collections.abc import Sequence
from dataclasses import dataclass

from alignment.misalignments.queries.misalignment_list import Found, Tally
from alignment.models.misalignments import Misalignment
from labeling.models.rubric import Criterion

_Cause = Misalignment.Cause
# So many of one cause, at least, say what to do.
ENOUGH = 3
NEXT = {
    _Cause.JUDGE: "refine the prompt",
    _Cause.LABEL: "decide on the labels, then look at the guideline",
    _Cause.CRITERION: "refine the guideline, or split the criterion",
    _Cause.KNOWLEDGE: "add or mend an article",
    _Cause.INJECTION: "look at the flagged chats",
    _Cause.OTHER: "read the notes",
}
NO_CAUSE = "none"
# Nobody gave a cause, and a label that people changed has closed it.
CHANGED = "changed"
GIVEN_BY_NOBODY = (CHANGED, NO_CAUSE)
WIDTH = 64  # of the longest bar, in pixels


@dataclass(frozen=True, slots=True)
class CauseBar:
    """How many items of one criterion have one cause, and the width of their bar on the scale of all."""

    cause: str
    n: int
    width: float


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One criterion: how many items of each cause, in the causes' order, then those without one.

    Of these the ones that a changed label has closed stand apart.
    """

    criterion: Criterion
    bars: tuple[CauseBar, ...]
    leading: str

    @property
    def advice(self) -> str:
        """What to refine; '' while no cause has enough items."""
        return NEXT[_Cause(self.leading)] if self.leading else ""

    @property
    def most(self) -> int:
        """How many items have the cause that most of them have."""
        return max(bar.n for bar in self.bars if bar.cause not in GIVEN_BY_NOBODY)

    @property
    def triaged(self) -> int:
        """How many have a cause."""
        return sum(bar.n for bar in self.bars if bar.cause not in GIVEN_BY_NOBODY)

    @property
    def total(self) -> int:
        """All items of the criterion."""
        return sum(bar.n for bar in self.bars)


def cause_rows(found: Found) -> list[CauseRow]:
    """Criteria with items, most items first; no query beyond those of `found`."""
    counts: dict[int, dict[str, int]] = {}
    for one in found.tally:
        of_it = counts.setdefault(one.criterion, {})
        of_it[_kind(one)] = of_it.get(_kind(one), 0) + one.n
    most = max((n for of_it in counts.values() for n in of_it.values()), default=1)
    made = [_row(one, counts[one.pk], most) for one in found.criteria]
    return sorted(made, key=lambda row: (-row.total, row.criterion.name))


def to_refine(rows: Sequence[CauseRow]) -> list[tuple[str, list[CauseRow]]]:
    """What to do next, each with the criteria that say so, in the causes' order."""
    steps = [(NEXT[cause], [row for row in rows if row.leading == cause]) for cause in _Cause]
    return [(words, some) for words, some in steps if some]


def _kind(one: Tally) -> str:
    if one.cause:
        return one.cause
    return CHANGED if one.closed_by == Misalignment.ClosedBy.LABEL else NO_CAUSE


def _row(criterion: Criterion, counts: dict[str, int], most: int) -> CauseRow:
    kinds = [(cause, counts.get(cause, 0)) for cause in (*_Cause.values, *GIVEN_BY_NOBODY)]
    bars = tuple(CauseBar(cause, n, round(WIDTH * n / most, 2)) for cause, n in kinds)
    top = max(_Cause, key=lambda cause: counts.get(cause, 0))
    return CauseRow(criterion, bars, top.value if counts.get(top, 0) >= ENOUGH else "")
