"""Disagreements: chats and criteria on which raters and judge answered differently."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode, ReportData

LISTED = 1000


@dataclass(frozen=True)
class Pair:
    """The human answer and the verdict on a chat and criterion; `judge` is None without True or False."""

    chat_id: str
    criterion: str
    human: bool
    judge: bool | None


def disagreement_places(data: ReportData) -> NDArray[np.intp]:
    """Find the disagreements: chats in the set's order, then criteria in the rubric's.

    Parameters
    ----------
    data : the report's data. Against each rater, a chat counts if any rater disagrees with the judge.

    Returns
    -------
    array of int, shape (disagreements, 2) : positions of chat and criterion.
    """
    if not data.criteria:
        return np.empty((0, 2), dtype=np.intp)
    return np.argwhere(np.column_stack([_differs(one, each_rater=data.each_rater) for one in data.criteria]))


def disagreement(data: ReportData, chat: int, criterion: int) -> Pair:
    """Return the answers at a place that `disagreement_places` found."""
    one = data.criteria[criterion]
    judge = one.judge is not None and bool(one.judge[chat] == JudgeCode.TRUE)
    return Pair(data.chat_ids[chat], one.spec.key, not judge, judge)


def disagreements(data: ReportData, *, limit: int = LISTED) -> tuple[list[dict[str, Any]], int]:
    """Return the first `limit` disagreements as JSON, and the number of all."""
    places = disagreement_places(data)
    # vars: asdict would deep-copy every field
    return [dict(vars(disagreement(data, *place))) for place in places[:limit].tolist()], len(places)


def _differs(criterion: CriterionData, *, each_rater: bool) -> NDArray[np.bool_]:
    human, judge = criterion.human, criterion.judge
    if judge is None:
        return np.zeros(len(human), dtype=np.bool_)
    if each_rater:
        true, false = criterion.counts[:, 0] > 0, criterion.counts[:, 1] > 0
    else:
        true, false = human == HumanCode.TRUE, human == HumanCode.FALSE
    differs: NDArray[np.bool_] = ((judge == JudgeCode.TRUE) & false) | ((judge == JudgeCode.FALSE) & true)
    return differs
