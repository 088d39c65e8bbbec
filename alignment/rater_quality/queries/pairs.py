"""The matrix of rater pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alignment.rater_quality.core import Pair, rater_pairs
from alignment.rater_quality.queries.answers import Given
from alignment.rater_quality.queries.raters import Person

RATERS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Matrix:
    """Raters by name and their pairs, `rows[i][j]`, None on the diagonal; `left_out` raters are not shown."""

    people: list[Person]
    rows: list[list[Pair | None]]
    left_out: int


def matrix(found: Given, people: Sequence[Person]) -> Matrix:
    """Every pair of those with the most labels, fifty at most."""
    labels = dict(zip(found.rater_ids.tolist(), found.by_rater.tolist(), strict=True))
    with_labels = [person for person in people if person.id in labels]
    most = sorted(with_labels, key=lambda person: -labels[person.id])[:RATERS_SHOWN]
    chosen = {person.id for person in most}
    shown = [person for person in with_labels if person.id in chosen]
    places = np.searchsorted(found.rater_ids, [person.id for person in shown])
    return Matrix(shown, rater_pairs(found.answers, places), len(with_labels) - len(shown))
