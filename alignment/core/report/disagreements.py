"""The chats on which people and the judge answered differently."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.core.report.data import CriterionData, HumanCode, JudgeCode, ReportData

LISTED = 1000


def disagreements(data: ReportData, *, limit: int = LISTED) -> tuple[list[dict[str, Any]], int]:
    """The first disagreements, chats in the set's order, criteria in the rubric's; and how many there are.

    Parameters
    ----------
    data : the report's data. Against each rater, a chat is listed when at least one rater answered otherwise
        than the judge.
    limit : longest list.
    """
    found = [np.flatnonzero(_differs(one, each_rater=data.each_rater)) for one in data.criteria]
    total = sum(len(chats) for chats in found)
    if not total:
        return [], 0
    chats = np.concatenate([chats[:limit] for chats in found])
    which = np.repeat(np.arange(len(found)), [len(chats[:limit]) for chats in found])
    order = np.lexsort((which, chats))[:limit]
    pairs = zip(chats[order].tolist(), which[order].tolist(), strict=True)
    return [_entry(data, chat, criterion) for chat, criterion in pairs], total


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


def _entry(data: ReportData, chat: int, criterion: int) -> dict[str, Any]:
    one = data.criteria[criterion]
    judge = one.judge is not None and bool(one.judge[chat] == JudgeCode.TRUE)
    return {
        "chat_id": data.chat_ids[chat],
        "criterion": one.spec.key,
        "human": not judge,
        "judge": judge,
    }
