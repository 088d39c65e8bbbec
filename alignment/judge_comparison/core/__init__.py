"""Paired comparison of several judges on the same chats and criteria."""

from alignment.judge_comparison.core.compare import OVERALL, Group, JudgePair, JudgeResult, compare
from alignment.judge_comparison.core.cost_effectiveness import (
    BetterJudge,
    CostEffectiveness,
    cost_effectiveness,
)
from alignment.judge_comparison.core.coverage import Exclusion
from alignment.judge_comparison.core.tallies import CriterionAnswers

__all__ = [
    "OVERALL",
    "BetterJudge",
    "CostEffectiveness",
    "CriterionAnswers",
    "Exclusion",
    "Group",
    "JudgePair",
    "JudgeResult",
    "compare",
    "cost_effectiveness",
]
