"""Several judges on the same chats and criteria, compared in pairs."""

from alignment.judge_comparison.core.compare import OVERALL, Duel, Group, Standing, compare
from alignment.judge_comparison.core.cost_effectiveness import Extra, Worth, worth
from alignment.judge_comparison.core.coverage import Without
from alignment.judge_comparison.core.tallies import CriterionAnswers

__all__ = [
    "OVERALL",
    "CriterionAnswers",
    "Duel",
    "Extra",
    "Group",
    "Standing",
    "Without",
    "Worth",
    "compare",
    "worth",
]
