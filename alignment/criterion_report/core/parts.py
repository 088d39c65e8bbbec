"""Results by topic and by number of messages."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Clusters, Codes, HumanCode
from alignment.reports.core.clustered import ClusteredAnswers
from alignment.reports.core.judge_side import judge_rates
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate, undefined_reasons

FEW = 30  # compared chats; with fewer the results are a hint only
# The first number of messages of each bin; the last one is open.
LENGTHS = (1, 5, 9, 17)
RATES = ("balanced_accuracy", "tpr", "tnr")


@dataclass(frozen=True)
class Part:
    """Human answers against verdicts on some of the chats, such as one topic; rates with intervals."""

    place: int
    table: Confusion
    rates: dict[str, Estimate]

    @property
    def few(self) -> bool:
        """Whether the results are a hint only."""
        return self.table.n < FEW

    def as_json(self) -> dict[str, Any]:
        """Return n, matrix, TPR, TNR and balanced accuracy with intervals, and reasons for missing ones."""
        return {
            "n": self.table.n,
            "human_true": self.table.human_true,
            "few": self.few,
            "confusion": asdict(self.table),
            **{name: estimate.as_json() for name, estimate in self.rates.items()},
            "undefined": undefined_reasons(self.rates),
        }


def by_part(human: Codes, judge: Codes, places: NDArray[np.integer], clusters: Clusters = None) -> list[Part]:
    """Count the 2×2 table of each part that has a compared chat, by its number.

    Parameters
    ----------
    human, judge : HumanCode and JudgeCode by chat, shape (chats,).
    places : number of the part that each chat belongs to, from 0, shape (chats,).
    clusters : number of each chat's cluster, shape (chats,); None if every chat is alone.

    Examples
    --------
    >>> codes = np.array([0, 0, 1, 4], dtype=np.int8)
    >>> [(part.place, part.table.n) for part in by_part(codes, codes, np.array([0, 2, 2, 1]))]
    [(0, 1), (2, 2)]
    """
    # True and False have the same codes on both sides.
    compared = (human <= HumanCode.FALSE) & (judge <= HumanCode.FALSE)
    width = int(places.max(initial=-1)) + 1
    cells = places[compared] * 4 + human[compared] * 2 + judge[compared]
    counts = np.bincount(cells, minlength=4 * width).reshape(-1, 4)
    parts = []
    for place in np.flatnonzero(counts.sum(axis=1)).tolist():
        table, here = Confusion(*counts[place].tolist()), places == place
        if clusters is None:
            rates = judge_rates(table)
        else:
            answers = ClusteredAnswers.of(human[here], judge[here], clusters[here])
            rates = {name: rate for name, rate in answers.rates.items() if name in RATES}
        parts.append(Part(place, table, rates))
    return parts


def length_bins(messages: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the bin (1–4, 5–8, 9–16, 17 or more) of each number of messages.

    >>> length_bins(np.array([1, 4, 5, 16, 17, 200])).tolist()
    [0, 0, 1, 2, 3, 3]
    """
    return np.searchsorted(np.array(LENGTHS[1:]), messages, side="right")


def length_range(place: int) -> Mapping[str, int | None]:
    """Return the first and last number of messages of a bin; the last bin has no last number.

    >>> length_range(0), length_range(3)
    ({'first': 1, 'last': 4}, {'first': 17, 'last': None})
    """
    is_open = place + 1 == len(LENGTHS)
    return {"first": LENGTHS[place], "last": None if is_open else LENGTHS[place + 1] - 1}
