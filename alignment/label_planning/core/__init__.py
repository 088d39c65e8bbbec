"""How many more labels a decision needs, of which answer, and what a draw of chats may bring."""

from alignment.label_planning.core.expected import (
    Expected,
    Seen,
    Shares,
    Sizes,
    Wanted,
    chats_for,
    draw_words,
    expected_false,
    first_sizes,
    others_beside,
    shares_of,
    split_of,
)
from alignment.statistics.label_needs import Asked, Decision, LabelCounts, Need, Part, missing_labels, needs

__all__ = [
    "Asked",
    "Decision",
    "Expected",
    "LabelCounts",
    "Need",
    "Part",
    "Seen",
    "Shares",
    "Sizes",
    "Wanted",
    "chats_for",
    "draw_words",
    "expected_false",
    "first_sizes",
    "missing_labels",
    "needs",
    "others_beside",
    "shares_of",
    "split_of",
]
