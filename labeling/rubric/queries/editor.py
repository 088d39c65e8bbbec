"""The rubric editor: rubrics, one rubric by dimension, settings of a criterion, the default rubric."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.db.models import Count, Exists, OuterRef, Prefetch, Q

from common.jsonl import Fields
from labeling.models.labels import Label
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Rubric
from labeling.rubric.core.rubric import CriterionSettings, CriterionSpec, RubricSpec, rubric_of
from labeling.rubric.queries.criteria import newest_version
from labeling.rubric.queries.judging import articles_of, is_judged
from labeling.rubric.queries.label_counts import is_asked

DEFAULT_RUBRIC = Path(__file__).resolve().parent.parent / "default_rubric.json"
_ACTIVE = Q(criteria__state=Criterion.State.ACTIVE)


# ---------- rubrics ----------


@dataclass(frozen=True, slots=True)
class RubricRow:
    """A rubric of the list: its active criteria, critical ones among them, and their dimensions."""

    rubric: Rubric
    criteria: int
    critical: int
    dimensions: int


def rubric_rows() -> list[RubricRow]:
    """Return all rubrics by name; one query."""
    rows = Rubric.objects.order_by("name").annotate(
        active=Count("criteria", filter=_ACTIVE, distinct=True),
        critical=Count("criteria", filter=_ACTIVE & Q(criteria__critical=True), distinct=True),
        dimensions=Count("criteria__dimension", filter=_ACTIVE, distinct=True),
    )
    return [RubricRow(row, row.active, row.critical, row.dimensions) for row in rows]


# ---------- one rubric ----------


@dataclass(frozen=True, slots=True)
class EditedCriterion:
    """A criterion with its current text and the labels given to it."""

    criterion: Criterion
    version: CriterionVersion
    labels: int


@dataclass(frozen=True, slots=True)
class EditedDimension:
    """A dimension with the rubric's active criteria; `removable`: no rubric has a criterion in it."""

    dimension: Dimension
    criteria: tuple[EditedCriterion, ...]
    removable: bool


@dataclass(frozen=True, slots=True)
class EditedRubric:
    """A rubric by dimension, its retired criteria, and the ids of the dimensions in their order."""

    rubric: Rubric
    dimensions: tuple[EditedDimension, ...]
    retired: tuple[EditedCriterion, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """Return the ids of its dimensions, in order."""
        return tuple(one.dimension.pk for one in self.dimensions)

    @property
    def count(self) -> int:
        """Return the number of active criteria."""
        return sum(len(one.criteria) for one in self.dimensions)


def edited_rubric(rubric: Rubric) -> EditedRubric:
    """
    Return a rubric as the editor shows it; constant number of queries.

    A dimension without criteria is in every rubric, one with criteria of other rubrics only is not.
    """
    criteria = list(_criteria(rubric))
    labels = dict(
        Label.objects.given()
        .filter(criterion__rubric=rubric)
        .order_by()
        .values_list("criterion")
        .annotate(labels=Count("pk"))
    )
    edited = [EditedCriterion(row, newest_version(row), labels.get(row.pk, 0)) for row in criteria]
    active = [one for one in edited if one.criterion.state == Criterion.State.ACTIVE]
    used = Exists(Criterion.objects.filter(dimension=OuterRef("pk")))
    own = {one.criterion.dimension_id for one in edited}
    rows = [row for row in Dimension.objects.annotate(used=used) if row.pk in own or not row.used]
    return EditedRubric(
        rubric=rubric,
        dimensions=tuple(
            EditedDimension(
                dimension=row,
                criteria=tuple(one for one in active if one.criterion.dimension_id == row.pk),
                removable=not row.used,
            )
            for row in rows
        ),
        retired=tuple(one for one in edited if one.criterion.state == Criterion.State.RETIRED),
    )


def _criteria(rubric: Rubric) -> list[Criterion]:
    return list(
        rubric.criteria.select_related("dimension").prefetch_related(
            Prefetch("versions", CriterionVersion.objects.order_by("number"))
        )
    )


# ---------- one criterion ----------


def settings_of(criterion: Criterion) -> CriterionSettings:
    """Return what a criterion has beside its texts; one query."""
    every = criterion.articles == Criterion.Articles.ALL
    return CriterionSettings(
        key=criterion.key,
        dimension=criterion.dimension.key,
        tier=criterion.tier,
        critical=criterion.critical,
        evidence_on_fail=criterion.evidence_on_fail,
        all_articles=every,
        knowledge=() if every else articles_of(criterion),
    )


def key_is_fixed(criterion: Criterion) -> bool:
    """Whether raters or a judge use the key: exports, files and judges name it."""
    return is_asked(criterion) or is_judged(criterion)


# ---------- the default rubric ----------


@dataclass(frozen=True, slots=True)
class OfferedCriterion:
    """A criterion of the default rubric; `taken` is the rubric that has its key already, '' for none."""

    spec: CriterionSpec
    taken: str


@cache
def default_rubric() -> RubricSpec:
    """Return the rubric that the workbench ships."""
    return rubric_of(Fields(json.loads(DEFAULT_RUBRIC.read_text(encoding="utf-8")), ""))


def offered_criteria() -> list[tuple[str, list[OfferedCriterion]]]:
    """Return the default rubric's criteria by the name of their dimension; one query."""
    spec = default_rubric()
    keys = [one.key for one in spec.criteria]
    rows = Criterion.objects.filter(key__in=keys).values_list("key", "rubric__name")
    taken: Mapping[str, str] = dict(rows)
    return [
        (
            dimension.name,
            [
                OfferedCriterion(one, taken.get(one.key, ""))
                for one in spec.criteria
                if one.dimension == dimension.key
            ],
        )
        for dimension in spec.dimensions
    ]
