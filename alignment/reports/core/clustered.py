"""A judge's statistics and pass rates on one criterion where chats belong together: clusters are units."""

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode
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
    patterns,
    resample_chats,
)
from alignment.statistics.macro_rates import ClassCounts, macro_rates

Clusters = NDArray[np.int64]


def clustered_statistics(
    data: CriterionData, table: Confusion, clusters: Clusters, *, seed: int, resamples: int = RESAMPLES
) -> dict[str, Estimate]:
    """Compute every statistic of the judge as `judge_statistics` does, with clusters of chats as units.

    Parameters
    ----------
    data : one criterion with verdicts. table : its human answers against verdicts.
    clusters : number of each chat's cluster, shape (chats,).
    seed, resamples : settings of the bootstrap, which resamples clusters.

    Returns
    -------
    dict of Estimate : shares with Wilson's interval on the effective number of answers (`mean_share`).
    """
    assert data.judge is not None  # noqa: S101  a run's report
    human, judge = data.human[np.newaxis], data.judge[np.newaxis]
    compared = judge <= JudgeCode.FALSE
    true, false = compared & (human == HumanCode.TRUE), compared & (human == HumanCode.FALSE)
    right = human == judge  # the codes of True and False are equal
    n = ClassCounts.of(true=true, false=false, clusters=clusters)
    hits = ClassCounts.of(true=true & right, false=false & right, clusters=clusters)
    rates = macro_rates(hits, n, reason=NO_PAIR)
    said_true = hits.true + n.false - hits.false
    estimates = {
        **rates,
        "precision": mean_share(hits.true, said_true, reason=NO_JUDGE_TRUE if table.n else NO_PAIR).estimate,
        **_bootstrapped(hits, n, table, seed=seed, resamples=resamples),
        "pabak": doubled(rates["accuracy"]),
    }
    return {name: estimates[name] for name in NAMES}


def _bootstrapped(
    hits: ClassCounts, n: ClassCounts, table: Confusion, *, seed: int, resamples: int
) -> dict[str, Estimate]:
    cells = np.concatenate([hits.true, n.true - hits.true, n.false - hits.false, hits.false]).T
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
