"""On which criteria the raters part, and by how much."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from alignment.rater_quality.core import FEW
from alignment.rater_quality.core.answers import Ints, counts_of
from alignment.rater_quality.queries.answers import Given
from alignment.rater_quality.queries.scope import QualityScope
from alignment.reports.core.human_side import human_side
from labeling.models.rubric import Criterion

SEED = 1  # of the chat bootstrap of α: the same labels give the same interval


@dataclass(frozen=True, slots=True)
class Parting:
    """
    One criterion. `shared` chats have two raters or more, on `parted` of them the raters differ.

    `disagreement` is the mean share of differing pairs of raters; `alpha` is {value, low, high}; `undefined`
    says by name why a value is missing.
    """

    criterion: Criterion
    raters: int
    shared: int
    parted: int
    disagreement: float | None
    alpha: dict[str, Any]
    undefined: dict[str, str]

    @property
    def few(self) -> bool:
        """Whether the figures are a hint only."""
        return self.shared < FEW


def partings(scope: QualityScope, found: Given) -> list[Parting]:
    """Where people part most comes first; criteria with few shared chats come after the others."""
    places = {int(pk): place for place, pk in enumerate(found.criterion_ids)}
    rows = [_parting(row, found, places.get(row.pk, -1)) for row in scope.criteria]
    return sorted(rows, key=lambda row: (row.few, -(row.disagreement or 0)))


def chat_counts(found: Given, place: int) -> tuple[Ints, Ints]:
    """Chats (their places) with an answer on a criterion, and their counts of True, False, not applicable."""
    chosen = found.answers.criteria == place
    chats, cells = np.unique(found.answers.chats[chosen], return_inverse=True)
    return chats, counts_of(cells, found.answers.values[chosen])


def split_of(counts: Ints) -> Ints:
    """Labels that are not the most frequent one, by chat: 0 where everybody agrees."""
    minority: Ints = counts.sum(axis=1) - counts.max(axis=1, initial=0)
    return minority


def _parting(row: Criterion, found: Given, place: int) -> Parting:
    _, counts = chat_counts(found, place)
    raters = np.unique(found.answers.raters[found.answers.criteria == place]).size
    side = human_side(counts, raters=raters, seed=SEED)
    agreement = side.body["percent_agreement"]
    return Parting(
        criterion=row,
        raters=raters,
        shared=side.body["overlap"],
        parted=int((split_of(counts) > 0).sum()),
        disagreement=None if agreement is None else 1 - agreement,
        alpha=side.body["krippendorff_alpha"],
        undefined={"alpha": side.undefined.get("human.krippendorff_alpha", "")},
    )
