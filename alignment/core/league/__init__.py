"""Several judges on the same chats and criteria, compared in pairs."""

from alignment.core.league.compare import OVERALL, Duel, Group, Standing, compare
from alignment.core.league.coverage import Without
from alignment.core.league.tallies import CriterionAnswers
from alignment.core.league.worth import Extra, Worth, worth

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
