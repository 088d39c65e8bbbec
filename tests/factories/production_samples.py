"""Populations of production chats, and judged and labelled samples of them, for tests of estimates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment.monitoring.core.two_phase import AuditLabels
from alignment.monitoring.core.weighted_rates import StratumSums

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Topic:
    """Chats of a topic: their number, and how many are drawn for the judge; the share of them that passes."""

    size: int
    sampled: int
    passing: float


@dataclass(frozen=True)
class Judge:
    """How a judge errs, and the share of chats to which the raters, and the judge, say *not applicable*."""

    tpr: float
    tnr: float
    not_applicable: float = 0.0


# Eight topics, small ones worse: a night's 16,840 chats.
SIZES = (9000, 4000, 2000, 1000, 500, 200, 100, 40)
PASSING = (0.97, 0.95, 0.90, 0.85, 0.80, 0.70, 0.60, 0.90)


def counted_draws(topics: Sequence[Topic], *, draws: int, seed: int) -> Iterator[list[StratumSums]]:
    """Draw stratified samples of a fixed population in which `round(size * passing)` chats pass."""
    rng = np.random.default_rng(seed)
    good = [round(one.size * one.passing) for one in topics]
    passed = [
        rng.hypergeometric(k, one.size - k, one.sampled, draws) for one, k in zip(topics, good, strict=True)
    ]
    for counts in zip(*passed, strict=True):
        yield [
            StratumSums.of_counts(
                size=one.size, sampled=one.sampled, passed=int(count), failed=one.sampled - int(count)
            )
            for one, count in zip(topics, counts, strict=True)
        ]


def share_passing(topics: Sequence[Topic]) -> float:
    """Share of all chats that pass, in the population of `counted_draws`."""
    return sum(round(one.size * one.passing) for one in topics) / sum(one.size for one in topics)


@dataclass(frozen=True)
class Population:
    """A fixed population with labels and verdicts: a and y of raters and judge by topic, shape (size, 4)."""

    topics: Sequence[Topic]
    chats: Sequence[Floats]

    @classmethod
    def of(cls, topics: Sequence[Topic], judge: Judge, *, seed: int) -> "Population":
        """Make up labels by the topics' rates, and verdicts by the judge's errors."""
        rng = np.random.default_rng(seed)
        chats = []
        for topic in topics:
            passes = rng.random(topic.size) < topic.passing
            right = rng.random(topic.size) < np.where(passes, judge.tpr, judge.tnr)
            human, own = rng.random((2, topic.size)) >= judge.not_applicable
            own |= human & (rng.random(topic.size) < 0.8)  # mostly the same chats
            chats.append(np.column_stack([human, human & passes, own, own & (passes == right)]).astype(float))
        return cls(topics, chats)

    @property
    def rate(self) -> float:
        """Share of the raters' applicable answers that pass."""
        whole = np.concatenate(list(self.chats))
        return float(whole[:, 1].sum() / whole[:, 0].sum())

    def draw(
        self, rng: np.random.Generator, *, audit: int, oversample: int = 0
    ) -> tuple[list[StratumSums], AuditLabels]:
        """Draw a judged sample, and from it a random audit and more of the chats that the judge fails."""
        rows, weights, strata = [], [], []
        for topic, chats in zip(self.topics, self.chats, strict=True):
            drawn = chats[rng.choice(topic.size, topic.sampled, replace=False)]
            rows.append(drawn)
            weights.append(np.full(topic.sampled, topic.size / topic.sampled))
            strata.append(StratumSums.of_chats(size=topic.size, answers=drawn[:, 2], passes=drawn[:, 3]))
        judged, weight = np.concatenate(rows), np.concatenate(weights)
        suspect = (judged[:, 2] > judged[:, 3]).astype(np.int64) if oversample else np.zeros(len(judged), int)
        labelled = rng.choice(len(judged), audit, replace=False)
        missed = np.setdiff1d(np.flatnonzero(suspect), labelled)
        added = rng.choice(missed, min(oversample, missed.size), replace=False)
        chosen = np.concatenate([labelled, added]).astype(np.int64)
        return strata, audit_of(judged[chosen], weight[chosen], suspect[chosen], np.bincount(suspect))


def audit_of(
    rows: Floats, weights: Floats, groups: NDArray[np.int64], group_sizes: NDArray[np.int64]
) -> AuditLabels:
    """Audit labels from rows of a and y of raters and judge, shape (labelled, 4)."""
    human_answers, human_passes, judge_answers, judge_passes = rows.T
    return AuditLabels(
        weights=weights,
        groups=groups,
        group_sizes=group_sizes,
        human_answers=human_answers,
        human_passes=human_passes,
        judge_answers=judge_answers,
        judge_passes=judge_passes,
    )
