"""Criteria whose labels cannot measure a judge: raters disagree, or too many chats are unresolved."""

from alignment.comparison.core.codes import Clusters, CriterionData
from alignment.reports.core.human_side import human_side
from alignment.reports.core.status import StatusPolicy, labels_problem
from alignment.reports.core.used_answers import human_labels, used_answers


def label_problem(data: CriterionData, *, policy: StatusPolicy, seed: int, clusters: Clusters = None) -> str:
    """Return the reason as the criterion's status has it; '' if its labels can measure a judge.

    Parameters
    ----------
    data : one criterion; of its verdicts only those by which labels were sampled matter.
    policy : the limits.
    seed, clusters : of the report, whose bounds this reason repeats.
    """
    used = used_answers(data)
    side = human_side(used.data.counts, raters=data.raters, seed=seed, clusters=clusters)
    return labels_problem(human_labels(used.tally, side.body), policy)
