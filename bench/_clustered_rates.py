"""Coverage of corrected pass rates where chats belong together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from alignment.comparison.core.codes import CriterionData, CriterionSpec, HumanCode
from alignment.comparison.core.tally import tally
from alignment.reports.core.clustered import clustered_corrected_rate
from alignment.reports.core.pass_rates import Method

SHARE, RATE = 0.7, 0.85  # of True, and the judge's on both answers


@dataclass(frozen=True, slots=True)
class ClusteredCell:
    """Clusters of so many chats each.

    alike : correlation of truth, and of the judge's errors, within a cluster.
    labelled : share of chats with a label; `whole`: of clusters, whose chats are all labelled.
    """

    clusters: int
    size: int
    alike: float
    labelled: float
    whole: bool

    def data(self, draw: np.random.Generator) -> CriterionData:
        """One simulated run."""
        chats = self.clusters * self.size
        truth = self._chance(draw) < SHARE
        verdict = truth == (self._chance(draw) < RATE)
        drawn = draw.random(self.clusters if self.whole else chats) < self.labelled
        known = drawn[self.numbers] if self.whole else drawn
        human = np.where(known, ~truth, HumanCode.UNLABELLED).astype(np.int8)
        spec = CriterionSpec("c", "d", "D", "simple", passes_when=True)
        return CriterionData(spec, human, (~verdict).astype(np.int8), np.zeros((chats, 3), np.int64), 1)

    @property
    def numbers(self) -> NDArray[Any]:
        """The cluster of each chat."""
        return np.repeat(np.arange(self.clusters), self.size)

    def _chance(self, draw: np.random.Generator) -> NDArray[Any]:
        """A number between 0 and 1 of each chat, correlated within clusters."""
        shared = draw.standard_normal(self.clusters)[self.numbers] * np.sqrt(self.alike)
        chance: NDArray[Any] = ndtr(
            shared + draw.standard_normal(len(self.numbers)) * np.sqrt(1 - self.alike)
        )
        return chance

    def covered(self, method: Method, *, sets: int, together: bool = True) -> float:
        """Share of the intervals that hold the planted share; without `together` clusters are ignored."""
        draw = np.random.default_rng([self.clusters, self.size, round(100 * self.alike), self.whole])
        alone, found = np.arange(self.clusters * self.size), []
        for _ in range(sets):
            data = self.data(draw)
            units = self.numbers if together else alone
            rate = clustered_corrected_rate(data, tally(data), units, method=method)
            if rate.interval is not None:
                found.append(rate.interval.low <= SHARE <= rate.interval.high)
        return float(np.mean(found))


CLUSTERED = [
    ClusteredCell(*shape, alike=alike, labelled=0.4, whole=whole)
    for shape in ((40, 10), (60, 5), (200, 3))
    for alike in (0.0, 0.3, 0.7)
    for whole in (False, True)
]


def clustered_shares(sets: int) -> Iterator[tuple[str, list[float]]]:
    """Coverage in percent of each cell, by method."""
    for method in (Method.ROGAN_GLADEN, Method.PPI):
        shares = [100 * cell.covered(method, sets=sets) for cell in CLUSTERED]
        yield f"pass rate by {method}, clusters", shares
