"""The answers on a criterion that its statistics and its status use."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode
from alignment.comparison.core.tally import Tally, tally
from alignment.reports.core.status import HumanLabels
from alignment.reports.core.weighted import represents


@dataclass(frozen=True)
class UsedAnswers:
    """A criterion without sampled labels that represent no others, and its tally.

    `unused` : number of compared chats whose labels are left out for that reason.
    """

    data: CriterionData
    tally: Tally
    unused: int = 0


def used_answers(data: CriterionData, *, each_rater: bool = False) -> UsedAnswers:
    """Return the answers that statistics, status and label problems are computed from."""
    if not (data.human == HumanCode.UNLABELLED).any():
        data = replace(data, inverse=None)  # no unlabelled chats to represent
    sampled = 0 if each_rater else sampled_by_verdict(data)
    if not sampled or represents(data):
        return UsedAnswers(data, tally(data, each_rater=each_rater))
    data = data.without_sampled
    return UsedAnswers(data, tally(data), sampled)


def sampled_by_verdict(data: CriterionData) -> int:
    """Return the number of compared chats that were sampled by verdict."""
    if data.inverse is None or data.judge is None:
        return 0
    answered = (data.human <= HumanCode.FALSE) & (data.judge <= JudgeCode.FALSE)
    return int((answered & (data.inverse > 0)).sum())


def human_labels(counts: Tally, agreement: Mapping[str, Any]) -> HumanLabels:
    """Return what the status asks of the labels; `agreement` is the criterion's `human` in JSON."""
    return HumanLabels(counts.labelled, counts.human(HumanCode.UNRESOLVED), agreement)
