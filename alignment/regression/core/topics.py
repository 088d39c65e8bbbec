"""Paired table by topic, without counts that disclose single hidden chats."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.disclosure_limit import MINIMUM_HOLDOUT_CHATS
from alignment.regression.core.evidence import Bools, PairedVerdicts, paired_difference
from alignment.statistics.design_effect import EffectivePairs
from alignment.statistics.estimates import Estimate
from alignment.statistics.paired_tests import PairedTable


@dataclass(frozen=True)
class TopicChange:
    """Changes on the chats of a topic, or of several topics counted together."""

    topics: tuple[int, ...]
    table: PairedTable
    pairs: EffectivePairs

    @property
    def difference(self) -> Estimate:
        """Candidate minus champion accuracy, with Tango's 95% interval; undefined for few chats."""
        if self.table.n < MINIMUM_HOLDOUT_CHATS:
            return Estimate(None, reason=f"fewer than {MINIMUM_HOLDOUT_CHATS} chats")
        return paired_difference(self.table, self.pairs)


def changes_by_topic(
    verdicts: PairedVerdicts, topics: NDArray[np.int64], *, held: Bools | None = None
) -> list[TopicChange]:
    """Return the paired table by topic, most chats first; topics counted together come last.

    Parameters
    ----------
    verdicts : one criterion.
    topics : topic id by chat.
    held : by chat, whether it is hidden from the reader; None if the reader sees all. No row then counts 1 to
        9 hidden chats, nor does the rest of the rows: topics with so few are counted together, adding the
        next-smallest topics until 10 are reached. The result is empty if all together have fewer.

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
    present = np.unique(topics[verdicts.compared]).tolist()
    held_by = (
        {}
        if held is None
        else {one: int((held & verdicts.compared & (topics == one)).sum()) for one in present}
    )
    together = _merged_topics(held_by)
    if together is None:
        return []
    alone = [(one,) for one in present if one not in together]
    rows = [_change(verdicts, names, topics) for names in alone]
    rows.sort(key=lambda row: -row.table.n)
    if together:
        rows.append(_change(verdicts, tuple(together), topics))
    return rows


def _change(verdicts: PairedVerdicts, names: tuple[int, ...], topics: NDArray[np.int64]) -> TopicChange:
    among = np.isin(topics, names)
    return TopicChange(names, verdicts.table(among), verdicts.pairs(among))


def _merged_topics(held: dict[int, int]) -> Sequence[int] | None:
    """Return the topics to count together; None if all of them together have too few hidden chats."""
    small = [topic for topic, n in held.items() if 0 < n < MINIMUM_HOLDOUT_CHATS]
    larger = sorted(
        (topic for topic, n in held.items() if n >= MINIMUM_HOLDOUT_CHATS), key=lambda topic: held[topic]
    )
    while small and sum(held[topic] for topic in small) < MINIMUM_HOLDOUT_CHATS:
        if not larger:
            return None
        small.append(larger.pop(0))
    return sorted(small)
