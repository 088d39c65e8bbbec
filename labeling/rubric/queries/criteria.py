"""Criteria that raters answer, and the versions of their texts."""

from collections.abc import Collection

from django.db.models import OuterRef, Prefetch, Subquery
from django.urls import reverse

from common.inbox.subjects import Subject
from common.problems import FieldProblem
from common.search.registry import Hit, Query
from labeling.models.labels import LabelingJob
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion


def criteria_of(job: LabelingJob) -> list[Criterion]:
    """List the job's active criteria in the rubric's order, each with its versions."""
    criteria = (
        job.criteria.filter(state=Criterion.State.ACTIVE)
        .select_related("dimension")
        .order_by("dimension__position", "dimension_id", "position", "id")
        .prefetch_related(Prefetch("versions", CriterionVersion.objects.order_by("number")))
    )
    return list(criteria)


def newest_version(criterion: Criterion) -> CriterionVersion:
    """Return the current version from the prefetched rows."""
    return list(criterion.versions.all())[-1]


def version_read(*, criterion: Criterion, number: int | None) -> CriterionVersion:
    """Return the version that an answer or note is about, by default the newest. Raises FieldProblem."""
    if number is None:
        return criterion.versions.latest("number")
    if version := criterion.versions.filter(number=number).first():
        return version
    raise FieldProblem("version", f"{criterion.key} has no version {number}.")


def criterion_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these criteria whose page the user may open."""
    if not user.has_perm("labeling.see_judge"):
        return {}
    return {
        row.pk: Subject(
            title=f"the criterion {row.name}",
            url=reverse("alignment:criterion_detail", args=[row.key]),
            people=(row.owner_id,) if row.owner_id else (),
        )
        for row in Criterion.objects.filter(pk__in=ids)
    }


def criterion_hits(query: Query, user: User, limit: int) -> list[Hit]:
    """Return the criteria that match by key, name, question or dimension, if the user may open them."""
    if not user.has_perm("labeling.see_judge"):
        return []
    newest = CriterionVersion.objects.filter(criterion=OuterRef("pk")).order_by("-number")
    rows = Criterion.objects.annotate(question=Subquery(newest.values("question")[:1]))
    rows = rows.filter(query.matches("key", "question", "dimension__name"))
    return [
        Hit(
            row.name,
            reverse("alignment:criterion_detail", args=[row.key]),
            f"{'Retired: ' if row.state == Criterion.State.RETIRED else ''}{row.question}",
        )
        for row in rows.order_by("-state", "dimension__position", "position")[:limit]
    ]
