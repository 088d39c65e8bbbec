"""Causes of disagreements by criterion, and the next step that they suggest."""

from collections.abc import Sequence
from dataclasses import dataclass

from alignment.misalignments.queries.misalignment_list import DisagreementSelection, Tally
from alignment.models.misalignments import Misalignment
from labeling.models.rubric import Criterion

_Cause = Misalignment.Cause
# Items of one cause that are enough to suggest a next step.
ENOUGH = 3
NEXT_STEPS = {
    _Cause.JUDGE: "refine the prompt",
    _Cause.LABEL: "adjudicate the labels, then review the guideline",
    _Cause.CRITERION: "refine the guideline, or split the criterion",
    _Cause.KNOWLEDGE: "add or correct an article",
    _Cause.INJECTION: "review the flagged chats",
    _Cause.OTHER: "read the notes",
}
NO_CAUSE = "none"
# Without a cause, and closed by a changed label.
CHANGED = "changed"
WITHOUT_CAUSE = (CHANGED, NO_CAUSE)
WIDTH = 64  # pixels of the longest bar


@dataclass(frozen=True, slots=True)
class CauseBar:
    """Number of items of one criterion with one cause; `width` in pixels, on one scale for all bars."""

    cause: str
    n: int
    width: float


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One criterion: items by cause, then those without one, split by whether a changed label closed them.

    `leading` is the most frequent cause if it has enough items, else ''.
    """

    criterion: Criterion
    bars: tuple[CauseBar, ...]
    leading: str

    @property
    def advice(self) -> str:
        """The next step; '' while no cause has enough items."""
        return NEXT_STEPS[_Cause(self.leading)] if self.leading else ""

    @property
    def most(self) -> int:
        """Number of items with the most frequent cause."""
        return max(bar.n for bar in self.bars if bar.cause not in WITHOUT_CAUSE)

    @property
    def triaged(self) -> int:
        """Number of items with a cause."""
        return sum(bar.n for bar in self.bars if bar.cause not in WITHOUT_CAUSE)

    @property
    def total(self) -> int:
        """Number of items."""
        return sum(bar.n for bar in self.bars)


def cause_rows(selection: DisagreementSelection) -> list[CauseRow]:
    """Rows of criteria with items, most items first; no query beyond those of `selection`."""
    counts: dict[int, dict[str, int]] = {}
    for one in selection.tally:
        by_kind = counts.setdefault(one.criterion, {})
        by_kind[_kind(one)] = by_kind.get(_kind(one), 0) + one.n
    most = max((n for by_kind in counts.values() for n in by_kind.values()), default=1)
    rows = [_row(one, counts[one.pk], most) for one in selection.criteria]
    return sorted(rows, key=lambda row: (-row.total, row.criterion.name))


def to_refine(rows: Sequence[CauseRow]) -> list[tuple[str, list[CauseRow]]]:
    """Next steps in the causes' order, each with the rows that suggest it."""
    steps = [(NEXT_STEPS[cause], [row for row in rows if row.leading == cause]) for cause in _Cause]
    return [(words, step_rows) for words, step_rows in steps if step_rows]


def _kind(one: Tally) -> str:
    if one.cause:
        return one.cause
    return CHANGED if one.closed_by == Misalignment.ClosedBy.LABEL else NO_CAUSE


def _row(criterion: Criterion, counts: dict[str, int], most: int) -> CauseRow:
    kinds = [(cause, counts.get(cause, 0)) for cause in (*_Cause.values, *WITHOUT_CAUSE)]
    bars = tuple(CauseBar(cause, n, round(WIDTH * n / most, 2)) for cause, n in kinds)
    top = max(_Cause, key=lambda cause: counts.get(cause, 0))
    return CauseRow(criterion, bars, top.value if counts.get(top, 0) >= ENOUGH else "")
