"""Coverage of the intervals of session scores: means, their difference, correlation."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import CriterionSpec, HumanCode
from alignment.session_scores.core import session_scores
from alignment.statistics.paired_scores import paired_scores

CRITERIA, CRITICAL = 13, 3
ALIKE = 0.3  # share of the judge's errors on a chat that are common to its criteria
POPULATION = 200_000  # chats that the planted values are computed from
PASSING, RATES, SIZES = (0.6, 0.9, 0.98), ((0.98, 0.6), (0.9, 0.9), (0.995, 0.95)), (20, 50, 200)
SPECS = [CriterionSpec(f"c{n}", "d", "D", "simple", True, n < CRITICAL) for n in range(CRITERIA)]


@dataclass(frozen=True, slots=True)
class Judged:
    """Chats on which criteria pass with this probability, and a judge's TPR and TNR."""

    passing: float
    tpr: float
    tnr: float

    def scores(self, chats: int, draw: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Human and judge scores; the chats differ in how much passes."""
        share = draw.beta(8 * self.passing, 8 * (1 - self.passing), chats)
        human = draw.random((CRITERIA, chats)) < share
        luck = draw.random((CRITERIA, chats))
        luck = np.where(draw.random((CRITERIA, chats)) < ALIKE, draw.random(chats), luck)
        judge = np.where(human, luck < self.tpr, luck >= self.tnr)
        first, second = (_scored(answers) for answers in (human, judge))
        return first, second


def _scored(passed: NDArray[Any]) -> NDArray[Any]:
    codes = np.where(passed, HumanCode.TRUE, HumanCode.FALSE).astype(np.int8)
    return session_scores(codes, SPECS).values


def session_shares(sets: int) -> Iterator[tuple[str, list[float]]]:
    """For each figure of the report the share of its intervals that hold the planted value, by cell."""
    shares: dict[str, list[float]] = {}
    for passing, rates in itertools.product(PASSING, RATES):
        judged, draw = Judged(passing, *rates), np.random.default_rng([round(1000 * passing), 1])
        human, judge = judged.scores(POPULATION, draw)
        planted = {
            "first": human.mean(),
            "second": judge.mean(),
            "difference": (judge - human).mean(),
            "correlation": np.corrcoef(human, judge)[0, 1],
        }
        for size in SIZES:
            shown: Counter[str] = Counter()
            held: Counter[str] = Counter()
            for seed in range(sets):
                found = paired_scores(*judged.scores(size, draw), seed=seed, resamples=1000)
                for name, value in planted.items():
                    interval = getattr(found, name).interval
                    if interval is not None:
                        shown[name] += 1
                        held[name] += interval.low <= value <= interval.high
            for name in planted:
                shares.setdefault(name, []).append(100 * held[name] / shown[name])
    names = {"first": "raters", "second": "judge", "difference": "difference", "correlation": "correlation"}
    for name, cells in shares.items():
        yield f"session score, {names[name]}", cells
