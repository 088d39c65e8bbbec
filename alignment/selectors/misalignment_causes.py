"""Why people and the judge differ, by criterion: what to refine."""

from collections.abc import Sequence
from dataclasses import dataclass

from alignment.models.misalignments import Misalignment
from alignment.selectors.misalignment_list import Found
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
WIDTH = 200


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One criterion: how many items of each cause, in the causes' order, and how many have none yet."""

    criterion: Criterion
    counts: tuple[int, ...]
    untriaged: int
    leading: str
    bars: tuple[tuple[str, float, float], ...]

    @property
    def advice(self) -> str:
        """What to refine; '' while no cause has enough items."""
        return NEXT[_Cause(self.leading)] if self.leading else ""

    @property
    def most(self) -> int:
        """How many items have the cause that most of them have."""
        return max(self.counts)

    @property
    def triaged(self) -> int:
        """How many have a cause."""
        return sum(self.counts)

    @property
    def total(self) -> int:
        """All items of the criterion."""
        return sum(self.counts) + self.untriaged


def cause_rows(found: Found) -> list[CauseRow]:
    """Criteria with items, most items first; no query beyond those of `found`."""
    counts: dict[int, dict[str, int]] = {}
    for criterion, cause, n in found.tally:
        of_it = counts.setdefault(criterion, {})
        of_it[cause] = of_it.get(cause, 0) + n
    most = max((sum(one.values()) for one in counts.values()), default=1)
    made = [_row(one, counts[one.pk], most) for one in found.criteria]
    return sorted(made, key=lambda row: (-row.total, row.criterion.name))


def to_refine(rows: Sequence[CauseRow]) -> list[tuple[str, list[CauseRow]]]:
    """What to do next, each with the criteria that say so, in the causes' order."""
    steps = [(NEXT[cause], [row for row in rows if row.leading == cause]) for cause in _Cause]
    return [(words, some) for words, some in steps if some]


def _row(criterion: Criterion, counts: dict[str, int], most: int) -> CauseRow:
    given = tuple(counts.get(cause, 0) for cause in _Cause.values)
    top = max(_Cause, key=lambda cause: counts.get(cause, 0))
    leading = top.value if counts.get(top, 0) >= ENOUGH else ""
    bars, at = [], 0.0
    for cause, n in [*zip(_Cause.values, given, strict=True), ("none", counts.get("", 0))]:
        width = WIDTH * n / most
        if n:
            bars.append((cause, round(at, 2), round(width, 2)))
        at += width
    return CauseRow(criterion, given, counts.get("", 0), leading, tuple(bars))
