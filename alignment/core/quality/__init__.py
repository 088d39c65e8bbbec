"""The quality of labels: each rater against the others, pairs of raters, pace."""

from alignment.core.quality.agreement import FEW, Agreement, agreements, pooled
from alignment.core.quality.answers import ALONE, FALSE, NA, TIED, TRUE, Answers, majority_of_others
from alignment.core.quality.course import course
from alignment.core.quality.pace import shortest_ms
from alignment.core.quality.pairs import Pair, pair_tables, rater_pairs

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
    "course",
    "majority_of_others",
    "pair_tables",
    "pooled",
    "rater_pairs",
    "shortest_ms",
]
