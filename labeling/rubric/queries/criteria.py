"""Criteria that raters answer, and the versions of their texts."""

from django.db.models import Prefetch

from common.problems import FieldProblem
from labeling.models.labels import LabelingJob
from labeling.models.rubric import Criterion, CriterionVersion


def criteria_of(job: LabelingJob) -> list[Criterion]:
    """The job's criteria that are still asked, in the rubric's order, each with its versions."""
    criteria = (
        job.criteria.filter(state=Criterion.State.ACTIVE)
        .select_related("dimension")
        .order_by("dimension__position", "dimension_id", "position", "id")
        .prefetch_related(Prefetch("versions", CriterionVersion.objects.order_by("number")))
    )
    return list(criteria)


def newest_version(criterion: Criterion) -> CriterionVersion:
    """The version in force, from the prefetched rows."""
    return list(criterion.versions.all())[-1]


def version_read(*, criterion: Criterion, number: int | None) -> CriterionVersion:
    """The version that an answer or a note is about, by default the newest. Raises FieldProblem."""
    if number is None:
        return criterion.versions.latest("number")
    if found := criterion.versions.filter(number=number).first():
        return found
    raise FieldProblem("version", f"{criterion.key} has no version {number}.")
