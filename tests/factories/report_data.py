"""Short ways to write the data of a report, and to build one."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from alignment.comparison.core.codes import CriterionData, CriterionSpec, HumanCode, ReportData
from alignment.reports.core import build_report
from alignment.reports.core.status import StatusPolicy
from alignment.statistics.agreement import Confusion

T, F, NA, UNRESOLVED, UNLABELLED = HumanCode
COUNTED = ("n", "unlabelled", "unresolved", "not_applicable", "no_verdict", "judge_not_applicable")


def spec(key: str = "polite", **changes: Any) -> CriterionSpec:
    fields = {
        "dimension": "compliance",
        "dimension_name": "Compliance",
        "tier": "simple",
        "passes_when": True,
    }
    return CriterionSpec(key=key, **{**fields, **changes})


def criterion(
    human: Sequence[int],
    judge: Sequence[int] | None,
    *,
    about: CriterionSpec | None = None,
    counts: Sequence[Sequence[int]] | None = None,
    tables: dict[str, Confusion] | None = None,
) -> CriterionData:
    labels = np.zeros((len(human), 3), dtype=np.int64)
    for chat, code in enumerate(human):
        if code <= NA:
            labels[chat, code] = 1
    return CriterionData(
        spec=about or spec(),
        human=np.array(human, dtype=np.int8),
        judge=None if judge is None else np.array(judge, dtype=np.int8),
        counts=labels if counts is None else np.array(counts, dtype=np.int64).reshape(len(human), 3),
        raters=3,
        rater_tables=tables or {},
    )


def report(*criteria: CriterionData, seed: int = 1, **fields: Any) -> dict[str, Any]:
    chat_ids = [f"chat-{number}" for number in range(len(criteria[0].human))]
    body = build_report(ReportData(chat_ids, criteria, **fields), policy=StatusPolicy(), seed=seed)
    encoded: dict[str, Any] = json.loads(json.dumps(body, allow_nan=False))
    assert encoded == body
    return encoded


def pairs(tp: int, fn: int, fp: int, tn: int) -> tuple[list[HumanCode], list[HumanCode]]:
    """Human and judge codes of a 2x2 table; True and False have the same codes on both sides."""
    human = [T] * (tp + fn) + [F] * (fp + tn)
    return human, [T] * tp + [F] * fn + [T] * fp + [F] * tn
