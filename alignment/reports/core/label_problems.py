"""Criteria whose labels cannot measure a judge: raters disagree, or too many chats are unresolved."""

from dataclasses import replace

from alignment.comparison.core.codes import Clusters, CriterionData, HumanCode
from alignment.comparison.core.tally import tally
from alignment.reports.core.human_side import human_side
from alignment.reports.core.status import HumanLabels, StatusPolicy, labels_problem


def label_problem(data: CriterionData, *, policy: StatusPolicy, seed: int, clusters: Clusters = None) -> str:
    """Return the reason as the criterion's status has it; '' if its labels can measure a judge.

    Parameters
    ----------
    data : one criterion; its verdicts are not used.
    policy : the limits.
    seed, clusters : of the report, whose bounds this reason repeats.
    """
    counts = tally(replace(data, judge=None))
    side = human_side(data.counts, raters=data.raters, seed=seed, clusters=clusters)
    labels = HumanLabels(counts.labelled, counts.human(HumanCode.UNRESOLVED), side.body)
    return labels_problem(labels, policy)
