"""The matrix of rater pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alignment.core.agreement import formulas
from alignment.core.quality import FEW, pair_tables
from alignment.selectors.quality.answers import Given
from alignment.selectors.quality.raters import Person

RATERS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Pair:
    """Two raters on the `n` questions both answered; undefined values are None."""

    n: int
    agreement: float | None
    kappa: float | None

    @property
    def few(self) -> bool:
        """Whether the figures are a hint only."""
        return self.n < FEW


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
    return Matrix(shown, _pairs(found, shown), len(with_labels) - len(shown))


def _pairs(found: Given, shown: Sequence[Person]) -> list[list[Pair | None]]:
    place = np.full(found.rater_ids.size, -1, dtype=np.int64)
    place[np.searchsorted(found.rater_ids, [person.id for person in shown])] = np.arange(len(shown))
    answers = found.answers.where(place[found.answers.raters] >= 0)
    answers = type(answers)(answers.chats, answers.criteria, place[answers.raters], answers.values)
    tables = pair_tables(answers, raters=len(shown)).astype(np.float64)
    n = tables.sum(axis=(-2, -1))
    agreement = formulas.ratio(np.trace(tables, axis1=-2, axis2=-1), n)
    kappa = formulas.cohen_kappa(tables)
    return [
        [
            None
            if i == j
            else Pair(int(n[i, j]), formulas.scalar(agreement[i, j]), formulas.scalar(kappa[i, j]))
            for j in range(len(shown))
        ]
        for i in range(len(shown))
    ]
