"""Overview of texts for raters: all rubrics for authors, one rubric for its raters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from labeling.models.labels import LabelingJob
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion, Rubric, RubricGuideline
from labeling.rubric.queries.criteria import newest_version
from labeling.rubric.queries.guidelines import CriterionText, criterion_text


@dataclass(frozen=True, slots=True)
class CriterionTexts:
    """A criterion of the overview: its current text and its open notes "criterion unclear"."""

    criterion: Criterion
    version: CriterionVersion
    unclear: int


@dataclass(frozen=True, slots=True)
class RubricTexts:
    """A rubric of the overview; `guideline` is None without one."""

    rubric: Rubric
    guideline: RubricGuideline | None
    criteria: tuple[CriterionTexts, ...]


def rubric_texts(*, unclear: Mapping[int, int]) -> list[RubricTexts]:
    """Return all rubrics with their active criteria; `unclear` counts open notes by criterion id."""
    rubrics = Rubric.objects.order_by("name").prefetch_related(
        Prefetch("guidelines", RubricGuideline.objects.select_related("created_by").order_by("number")),
        Prefetch("criteria", _active()),
    )
    return [
        RubricTexts(
            rubric=rubric,
            guideline=next(reversed(rubric.guidelines.all()), None),
            criteria=tuple(
                CriterionTexts(row, newest_version(row), unclear.get(row.pk, 0))
                for row in rubric.criteria.all()
            ),
        )
        for rubric in rubrics
    ]


def _active() -> QuerySet[Criterion]:
    return (
        Criterion.objects.filter(state=Criterion.State.ACTIVE)
        .select_related("dimension")
        .order_by("dimension__position", "dimension_id", "position", "id")
        .prefetch_related(Prefetch("versions", CriterionVersion.objects.order_by("number")))
    )


def rubric_of_rater(*, rubric_id: int, rater: Rater) -> Rubric | None:
    """Return the rubric if the rater has or had a labelling job in it, else None."""
    jobs = LabelingJob.objects.filter(chat_set__rubric=OuterRef("pk"))
    own = Q(raters=rater)
    if rater.user_id:
        own |= Q(group__user=rater.user_id)
    return Rubric.objects.filter(Exists(jobs.filter(own)), pk=rubric_id).first()


def texts_for_rater(*, rubric: Rubric) -> Sequence[tuple[str, list[CriterionText]]]:
    """Return the texts of the active criteria for raters, by dimension."""
    by_dimension: dict[str, list[CriterionText]] = {}
    for row in _active().filter(rubric=rubric):
        by_dimension.setdefault(row.dimension.name, []).append(criterion_text(row))
    return list(by_dimension.items())
