"""Expected labels of a sample, and the sample size that a decision needs."""

from alignment.label_planning.core.expected import (
    AnswerCounts,
    Expected,
    MissingLabels,
    Shares,
    Sizes,
    expected_false,
    fewest_others,
    sample_advice,
    shares_of,
    sizes_within,
    smallest_sizes,
)

__all__ = [
    "AnswerCounts",
    "Expected",
    "MissingLabels",
    "Shares",
    "Sizes",
    "expected_false",
    "fewest_others",
    "sample_advice",
    "shares_of",
    "sizes_within",
    "smallest_sizes",
]
