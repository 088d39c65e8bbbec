"""A judge's statistics and pass rates on one criterion where chats belong together: clusters are units."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes, CriterionData, HumanCode, JudgeCode
from alignment.comparison.core.tally import Tally, joint_codes
from alignment.reports.core.judge_side import (
    BOOTSTRAPPED,
    NAMES,
    NO_JUDGE_TRUE,
    NO_PAIR,
    constant_estimate,
    doubled,
)
from alignment.reports.core.pass_rates import (
    NO_ANSWER,
    NO_VERDICT,
    Method,
    corrected_pass_rate,
    passing,
    raw_corrected,
)
from alignment.statistics.agreement import Confusion
from alignment.statistics.design_effect import by_cluster, mean_error, mean_share
from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import (
    RESAMPLES,
    bootstrap_estimate,
    half_of_each,
    modified_wilson,
    normal_quantile,
    patterns,
    resample_chats,
    student_quantile,
)
from alignment.statistics.macro_rates import FEW_CLUSTERS, ClassCounts, macro_rates
from alignment.statistics.prevalence_correction import TOO_WIDE, WIDEST_USABLE

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


def clustered_corrected_rate(
    data: CriterionData, tally: Tally, clusters: Clusters, *, method: Method | None
) -> Estimate:
    """Return the corrected pass rate, its interval stretched by the clusters' design effect.

    The margins of independent chats are multiplied by the ratio of the two standard errors that follow from
    the value's change with one more chat of each kind (infinitesimal jackknife: Efron & Tibshirani 1993,
    chapter 22), and of Student's to the normal quantile. Neither makes them narrower.
    """
    rate = corrected_pass_rate(tally, passes_when=data.spec.passes_when, method=method)
    if method is None or rate.value is None or rate.interval is None:
        return rate
    assert data.judge is not None  # noqa: S101  a run's report
    influence = _influence(tally, method)[joint_codes(data.human, data.judge)]
    alone, together = mean_error(influence, None), mean_error(influence, clusters)
    if alone is None or together is None:
        return Estimate(rate.value, reason=FEW_CLUSTERS)
    ratio = together.error / alone.error if alone.error else 1.0
    stretch = max(1.0, ratio) * student_quantile(0.95, together.degrees) / normal_quantile(0.95)
    low = max(0.0, rate.value - stretch * (rate.value - rate.interval.low))
    high = min(1.0, rate.value + stretch * (rate.interval.high - rate.value))
    if method is Method.ROGAN_GLADEN and high - low > WIDEST_USABLE:
        return Estimate(None, reason=TOO_WIDE)
    return replace(rate, interval=Interval(low, high))


def _influence(tally: Tally, method: Method) -> NDArray[np.float64]:
    """Change of the corrected share with one more chat, by the chat's joint code; 0 for kinds without one."""
    value, changes = raw_corrected(tally, method), np.zeros(tally.joint.size)
    for kind in np.flatnonzero(tally.joint):
        more = tally.joint.ravel().copy()
        more[kind] += 1
        moved = raw_corrected(replace(tally, joint=more.reshape(tally.joint.shape)), method)
        changes[kind] = 0.0 if value is None or moved is None else moved - value
    return changes


def _rate(codes: NDArray[np.int8], data: CriterionData, clusters: Clusters, *, reason: str) -> Estimate:
    true, either = (
        by_cluster(chosen[np.newaxis], clusters)
        for chosen in (codes == HumanCode.TRUE, codes <= HumanCode.FALSE)
    )
    return passing(mean_share(true, either, reason=reason).estimate, passes_when=data.spec.passes_when)
