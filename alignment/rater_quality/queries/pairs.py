"""Matrix of rater pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alignment.rater_quality.core import Pair, rater_pairs
from alignment.rater_quality.queries.answers import Labels
from alignment.rater_quality.queries.raters import Person

RATERS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Matrix:
    """Raters by name, their pairs `rows[i][j]` (None on the diagonal), and the number of raters omitted."""

    raters: list[Person]
    rows: list[list[Pair | None]]
    omitted: int


def matrix(labels: Labels, people: Sequence[Person]) -> Matrix:
    """Compare each pair of the raters with most labels, fifty at most."""
    counts = dict(zip(labels.rater_ids.tolist(), labels.by_rater.tolist(), strict=True))
    with_labels = [person for person in people if person.id in counts]
    most = sorted(with_labels, key=lambda person: -counts[person.id])[:RATERS_SHOWN]
    chosen = {person.id for person in most}
    shown = [person for person in with_labels if person.id in chosen]
    places = np.searchsorted(labels.rater_ids, [person.id for person in shown])
    return Matrix(shown, rater_pairs(labels.answers, places), len(with_labels) - len(shown))
