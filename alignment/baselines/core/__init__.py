"""Baselines for a judge: the majority class, and a bag-of-words classifier."""

from alignment.baselines.core.bag_of_words import (
    MOST_CHARACTERS,
    MOST_CHATS,
    Codes,
    Labelled,
    OutOfFold,
    out_of_fold,
    sampled_chats,
)
from alignment.baselines.core.comparison import Comparison, Finding, compare, finding

__all__ = [
    "MOST_CHARACTERS",
    "MOST_CHATS",
    "Codes",
    "Comparison",
    "Finding",
    "Labelled",
    "OutOfFold",
    "compare",
    "finding",
    "out_of_fold",
    "sampled_chats",
]
