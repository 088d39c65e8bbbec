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

__all__ = [
    "Expected",
    "Seen",
    "Shares",
    "Sizes",
    "Wanted",
    "chats_for",
    "draw_words",
    "expected_false",
    "first_sizes",
    "others_beside",
    "shares_of",
    "split_of",
]
