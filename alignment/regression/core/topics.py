"""The paired table by topic, and how much of it may be told of chats that are held out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.disclosure_limit import FEWEST
from alignment.regression.core.evidence import Bools, PairedVerdicts
from alignment.statistics.estimates import Estimate
from alignment.statistics.paired_tests import PairedTable, tango_interval


@dataclass(frozen=True)
class TopicChange:
    """What changed on the chats of a topic; `topics` are several where they are told of together."""

    topics: tuple[int, ...]
    table: PairedTable

    @property
    def difference(self) -> Estimate:
        """Candidate's share right minus champion's, with Tango's 95% interval; undefined for few chats."""
        if self.table.n < FEWEST:
            return Estimate(None, reason=f"fewer than {FEWEST} chats")
        return Estimate(self.table.difference, tango_interval(self.table))


def changes_by_topic(
    verdicts: PairedVerdicts, topics: NDArray[np.int64], *, held: Bools | None = None
) -> list[TopicChange]:
    """The paired table of each topic with a compared chat, most chats first; those told together come last.

    Parameters
    ----------
    verdicts : one criterion.
    topics : the topic's id by chat.
    held : by chat, whether it is held out from the reader; None for who may read all. No row then counts
        from 1 to 9 held-out chats, and none can be found by taking the others from the whole: topics with so
        few are counted together, with the next larger ones where they are still too few. Nothing is told
        where all of them are.

    Examples
    --------
    >>> codes = np.zeros(12, dtype=np.int8)
    >>> same = PairedVerdicts("polite", "simple", codes, codes, codes)
    >>> topics = np.array([1] * 11 + [2])
    >>> [(row.topics, row.table.n) for row in changes_by_topic(same, topics)]
    [((1,), 11), ((2,), 1)]
    >>> [row.topics for row in changes_by_topic(same, topics, held=np.ones(12, dtype=bool))]
    [(1, 2)]
    """
    found = np.unique(topics[verdicts.compared]).tolist()
    held_by = (
        {}
        if held is None
        else {one: int((held & verdicts.compared & (topics == one)).sum()) for one in found}
    )
    together = _told_together(held_by)
    if together is None:
        return []
    alone = [(one,) for one in found if one not in together]
    rows = [TopicChange(names, verdicts.table(np.isin(topics, names))) for names in alone]
    rows.sort(key=lambda row: -row.table.n)
    if together:
        rows.append(TopicChange(tuple(together), verdicts.table(np.isin(topics, together))))
    return rows


def _told_together(held: dict[int, int]) -> Sequence[int] | None:
    """The topics that are counted as one; None where even all of them hold too few."""
    small = [topic for topic, n in held.items() if 0 < n < FEWEST]
    larger = sorted((topic for topic, n in held.items() if n >= FEWEST), key=lambda topic: held[topic])
    while small and sum(held[topic] for topic in small) < FEWEST:
        if not larger:
            return None
        small.append(larger.pop(0))
    return sorted(small)
