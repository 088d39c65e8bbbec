"""Label quality: each rater against the others, pairs of raters, pace."""

from alignment.rater_quality.core.agreement import FEW, Agreement, agreements, pooled
from alignment.rater_quality.core.answers import ALONE, FALSE, NA, TIED, TRUE, Answers, majority_of_others
from alignment.rater_quality.core.pace import shortest_ms
from alignment.rater_quality.core.pairs import Pair, pair_tables, rater_pairs
from alignment.rater_quality.core.trend import trend

__all__ = [
    "ALONE",
    "FALSE",
    "FEW",
    "NA",
    "TIED",
    "TRUE",
    "Agreement",
    "Answers",
    "Pair",
    "agreements",
    "majority_of_others",
    "pair_tables",
    "pooled",
    "rater_pairs",
    "shortest_ms",
    "trend",
]
