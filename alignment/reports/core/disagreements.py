"""The chats on which people and the judge answered differently."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode, ReportData

LISTED = 1000


@dataclass(frozen=True)
class Pair:
    """What people and the judge answered on a chat and a criterion; `judge` None: neither True nor False."""

    chat_id: str
    criterion: str
    human: bool
    judge: bool | None


def disagreeing(data: ReportData) -> NDArray[np.intp]:
    """Where people and the judge differ, chats in the set's order, criteria in the rubric's.

    Parameters
    ----------
    data : the report's data. Against each rater, a chat is listed when at least one rater answered otherwise
        than the judge.

    Returns
    -------
    array of int, shape (disagreements, 2) : positions of chat and criterion.
    """
    if not data.criteria:
        return np.empty((0, 2), dtype=np.intp)
    return np.argwhere(np.column_stack([_differs(one, each_rater=data.each_rater) for one in data.criteria]))


def disagreement(data: ReportData, chat: int, criterion: int) -> Pair:
    """What stands at a place that `disagreeing` names."""
    one = data.criteria[criterion]
    judge = one.judge is not None and bool(one.judge[chat] == JudgeCode.TRUE)
    return Pair(data.chat_ids[chat], one.spec.key, not judge, judge)


def disagreements(data: ReportData, *, limit: int = LISTED) -> tuple[list[dict[str, Any]], int]:
    """The first `limit` disagreements as JSON, and how many there are."""
    places = disagreeing(data)
    # vars: asdict would copy each field of each in depth
    return [dict(vars(disagreement(data, *place))) for place in places[:limit].tolist()], len(places)


def _differs(criterion: CriterionData, *, each_rater: bool) -> NDArray[np.bool_]:
    people, judge = criterion.human, criterion.judge
    if judge is None:
        return np.zeros(len(people), dtype=np.bool_)
    if each_rater:
        true, false = criterion.counts[:, 0] > 0, criterion.counts[:, 1] > 0
    else:
        true, false = people == HumanCode.TRUE, people == HumanCode.FALSE
    differs: NDArray[np.bool_] = ((judge == JudgeCode.TRUE) & false) | ((judge == JudgeCode.FALSE) & true)
    return differs
