"""Agreement between raters by criterion."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from alignment.rater_quality.core import FEW
from alignment.rater_quality.core.answers import Ints, counts_of
from alignment.rater_quality.queries.answers import Labels
from alignment.rater_quality.queries.scope import QualityScope
from alignment.reports.core.human_side import human_side
from labeling.models.rubric import Criterion

SEED = 1  # of the chat bootstrap of α: the same labels give the same interval


@dataclass(frozen=True, slots=True)
class CriterionAgreement:
    """
    Agreement between raters on one criterion.

    shared : chats with two raters or more. disagreements : shared chats with different answers.
    disagreement : mean share of differing pairs of raters. alpha : {value, low, high}.
    undefined : reasons of missing values by name.
    """

    criterion: Criterion
    raters: int
    shared: int
    disagreements: int
    disagreement: float | None
    alpha: dict[str, Any]
    undefined: dict[str, str]

    @property
    def few(self) -> bool:
        """Whether the shared chats are too few for more than an indication."""
        return self.shared < FEW


def criterion_agreements(scope: QualityScope, labels: Labels) -> list[CriterionAgreement]:
    """Return the criteria, most disagreement first; those with few shared chats last."""
    places = {int(pk): place for place, pk in enumerate(labels.criterion_ids)}
    rows = [_criterion_agreement(row, labels, places.get(row.pk, -1)) for row in scope.criteria]
    return sorted(rows, key=lambda row: (row.few, -(row.disagreement or 0)))


def chat_counts(labels: Labels, place: int) -> tuple[Ints, Ints]:
    """Return indexes of chats with a label on a criterion, and counts of True, False, not applicable."""
    chosen = labels.answers.criteria == place
    chats, cells = np.unique(labels.answers.chats[chosen], return_inverse=True)
    return chats, counts_of(cells, labels.answers.values[chosen])


def minority_counts(counts: Ints) -> Ints:
    """Count the labels other than the most frequent one, by chat: 0 if all agree."""
    minority: Ints = counts.sum(axis=1) - counts.max(axis=1, initial=0)
    return minority


def _criterion_agreement(row: Criterion, labels: Labels, place: int) -> CriterionAgreement:
    _, counts = chat_counts(labels, place)
    raters = np.unique(labels.answers.raters[labels.answers.criteria == place]).size
    side = human_side(counts, raters=raters, seed=SEED)
    agreement = side.body["percent_agreement"]
    return CriterionAgreement(
        criterion=row,
        raters=raters,
        shared=side.body["overlap"],
        disagreements=int((minority_counts(counts) > 0).sum()),
        disagreement=None if agreement is None else 1 - agreement,
        alpha=side.body["krippendorff_alpha"],
        undefined={"alpha": side.undefined.get("human.krippendorff_alpha", "")},
    )
