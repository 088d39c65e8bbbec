"""A judge's statistics and pass rates on one criterion where chats belong together: clusters are units."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes, CriterionData, HumanCode, JudgeCode
from alignment.reports.core.judge_side import (
    BOOTSTRAPPED,
    NAMES,
    NO_JUDGE_TRUE,
    NO_PAIR,
    constant_estimate,
    doubled,
)
from alignment.reports.core.pass_rates import NO_ANSWER, NO_VERDICT, passing
from alignment.statistics.agreement import Confusion
from alignment.statistics.design_effect import by_cluster, mean_share
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import (
    RESAMPLES,
    bootstrap_estimate,
    half_of_each,
    modified_wilson,
    patterns,
    resample_chats,
)
from alignment.statistics.macro_rates import ClassCounts, macro_rates

Clusters = NDArray[np.int64]


@dataclass(frozen=True)
class ClusteredAnswers:
    """A judge's right answers, and all its answers, by cluster of chats."""

    right: ClassCounts
    n: ClassCounts

    @classmethod
    def of(cls, human: Codes, judge: Codes, clusters: Clusters) -> "ClusteredAnswers":
        """Count chats with True or False of both; codes and numbers of clusters, shape (chats,)."""
        human, judge = human[np.newaxis], judge[np.newaxis]
        compared = judge <= JudgeCode.FALSE
        true, false = compared & (human == HumanCode.TRUE), compared & (human == HumanCode.FALSE)
        right = human == judge  # the codes of True and False are equal
        return cls(
            ClassCounts.of(true=true & right, false=false & right, clusters=clusters),
            ClassCounts.of(true=true, false=false, clusters=clusters),
        )

    @property
    def rates(self) -> dict[str, Estimate]:
        """Accuracy, balanced accuracy, TPR and TNR."""
        return macro_rates(self.right, self.n, reason=NO_PAIR)


def clustered_statistics(
    answers: ClusteredAnswers, table: Confusion, *, seed: int, resamples: int = RESAMPLES
) -> dict[str, Estimate]:
    """Compute every statistic of the judge as `judge_statistics` does, with clusters of chats as units.

    Parameters
    ----------
    answers : by cluster. table : human answers against verdicts, of all these clusters.
    seed, resamples : settings of the bootstrap, which resamples clusters.

    Returns
    -------
    dict of Estimate : shares with Wilson's interval on the effective number of answers (`mean_share`).
    """
    right, n, rates = answers.right, answers.n, answers.rates
    said_true = right.true + n.false - right.false
    estimates = {
        **rates,
        "precision": mean_share(
            right.true,
            said_true,
            reason=NO_JUDGE_TRUE if table.n else NO_PAIR,
            interval=modified_wilson,
        ).estimate,
        **_bootstrapped(right, n, table, seed=seed, resamples=resamples),
        "pabak": doubled(rates["accuracy"]),
    }
    return {name: estimates[name] for name in NAMES}


def _bootstrapped(
    right: ClassCounts, n: ClassCounts, table: Confusion, *, seed: int, resamples: int
) -> dict[str, Estimate]:
    cells = np.concatenate([right.true, n.true - right.true, n.false - right.false, right.false]).T
    clusters = patterns(cells)
    pseudo = half_of_each(table.n / max(1, int(clusters.chats.sum())))
    resampled = resample_chats(clusters.rows, clusters.chats, seed=seed, resamples=resamples, pseudo=pseudo)
    return {
        name: constant_estimate(name, table)
        or bootstrap_estimate(
            getattr(table, name), one.statistic, resampled, reason=one.undefined if table.n else NO_PAIR
        )
        for name, one in BOOTSTRAPPED.items()
    }


def clustered_human_rate(data: CriterionData, clusters: Clusters) -> Estimate:
    """Return the pass rate of the chats with a human True or False."""
    return _rate(data.human, data, clusters, reason=NO_ANSWER)


def clustered_judge_rate(data: CriterionData, clusters: Clusters) -> Estimate:
    """Return the uncorrected pass rate of all chats with a verdict of True or False."""
    assert data.judge is not None  # noqa: S101  a run's report
    return _rate(data.judge, data, clusters, reason=NO_VERDICT)


def _rate(codes: NDArray[np.int8], data: CriterionData, clusters: Clusters, *, reason: str) -> Estimate:
    true, either = (
        by_cluster(chosen[np.newaxis], clusters)
        for chosen in (codes == HumanCode.TRUE, codes <= HumanCode.FALSE)
    )
    return passing(mean_share(true, either, reason=reason).estimate, passes_when=data.spec.passes_when)
