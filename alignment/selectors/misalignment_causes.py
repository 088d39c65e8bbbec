"""Why people and the judge differ, by criterion: what to refine."""

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
    advice: str
    bars: tuple[tuple[str, float, float], ...]

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


def _row(criterion: Criterion, counts: dict[str, int], most: int) -> CauseRow:
    given = tuple(counts.get(cause, 0) for cause in _Cause.values)
    top = max(_Cause, key=lambda cause: counts.get(cause, 0))
    advice = NEXT[top] if counts.get(top, 0) >= ENOUGH else ""
    bars, at = [], 0.0
    for cause, n in [*zip(_Cause.values, given, strict=True), ("none", counts.get("", 0))]:
        width = WIDTH * n / most
        if n:
            bars.append((cause, round(at, 2), round(width, 2)))
        at += width
    return CauseRow(criterion, given, counts.get("", 0), advice, tuple(bars))
