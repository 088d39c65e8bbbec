"""Preview of a redesign: labels that would carry over and labelling jobs that it affects."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from common.problems import FieldProblem, shown
from labeling.models.labels import Adjudication, Label, LabelingJob, counting_versions
from labeling.models.rubric import Criterion, Dimension
from labeling.rubric.core.redesign import Redesign, Successor, redesign_check

OPEN_JOBS = (LabelingJob.State.OPEN, LabelingJob.State.WAITING)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of answers on the retired criteria: those that carry over, and those that differ and stay."""

    carried: int = 0
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class LabelCarryOver:
    """The labels and adjudications that carry over to one new criterion."""

    key: str
    olds: tuple[str, ...]
    labels: Tally
    adjudications: Tally


@dataclass(frozen=True, slots=True)
class TouchedJob:
    """An open job that asks a criterion to be retired, and its number of other criteria."""

    id: int
    name: str
    left: int


@dataclass(frozen=True, slots=True)
class Consequences:
    """The effects of a redesign on labelling. The old criteria always keep their labels."""

    labels: int
    adjudications: int
    drafts: int
    carrying: tuple[LabelCarryOver, ...]
    jobs: tuple[TouchedJob, ...]


def redesigned(*, redesign: Redesign) -> list[Criterion]:
    """
    Return the criteria to retire, in the rubric's order, if the redesign is valid.

    Raises FieldProblem: what `redesign_check` refuses; an unknown or retired criterion, or one of another
    rubric; an unknown dimension; a key that is in use; "not applicable" answers that would carry over to a
    criterion that does not allow them.
    """
    redesign_check(redesign)
    rows = list(Criterion.objects.filter(key__in=redesign.olds).order_by("position", "pk"))
    if unknown := sorted(set(redesign.olds) - {row.key for row in rows}):
        raise FieldProblem("others", f"no criterion {shown(unknown[0])}")
    for row in rows:
        if row.state == Criterion.State.RETIRED:
            raise FieldProblem("others", f"{row.key} is already retired")
        if row.rubric_id != rows[0].rubric_id:
            raise FieldProblem("others", f"{row.key} belongs to another rubric than {rows[0].key}")
    _check_successors(redesign.into)
    for n, successor in enumerate(redesign.into):
        _check_not_applicable(n, successor, rows)
    return rows


def _check_successors(into: Sequence[Successor]) -> None:
    keys = [successor.spec.key for successor in into]
    taken = set(Criterion.objects.filter(key__in=keys).values_list("key", flat=True))
    dimensions = set(Dimension.objects.values_list("key", flat=True))
    for n, successor in enumerate(into):
        if successor.spec.key in taken:
            raise FieldProblem(f"into[{n}].key", f"{shown(successor.spec.key)} is already in use")
        if successor.spec.dimension not in dimensions:
            raise FieldProblem(f"into[{n}].dimension", f"no dimension {shown(successor.spec.dimension)}")


def _check_not_applicable(n: int, successor: Successor, olds: Sequence[Criterion]) -> None:
    ids = [row.pk for row in olds if row.key in successor.carries]
    if successor.spec.allow_na or not ids:
        return
    labels, adjudications = labels_to_carry(ids), adjudications_of(ids)
    if total := labels.filter(value=None).count() + adjudications.filter(value=None).count():
        raise FieldProblem(
            f"into[{n}].allow_na",
            f"{total:,} of the answers to carry over are “not applicable”: allow that answer, "
            "or carry no labels",
        )


def labels_to_carry(criterion_ids: Collection[int]) -> QuerySet[Label]:
    """Return the counted labels of these criteria: blind, to the question that counts."""
    # NB: by version ids, as for the consensus: else PostgreSQL searches them again for each label.
    versions = list(counting_versions().filter(criterion__in=criterion_ids).values_list("pk", flat=True))
    return Label.objects.given().filter(version__in=versions)


def adjudications_of(criterion_ids: Collection[int]) -> QuerySet[Adjudication]:
    """Return the current adjudications on these criteria."""
    return Adjudication.objects.filter(criterion__in=criterion_ids, replaced_at=None)


def consequences(*, redesign: Redesign, olds: Sequence[Criterion]) -> Consequences:
    """Return the current effects of the redesign; queries grow only with the new criteria."""
    ids = [row.pk for row in olds]
    waiting = Label.objects.filter(criterion__in=ids, state=Label.State.DRAFT)
    return Consequences(
        labels=Label.objects.filter(criterion__in=ids, state=Label.State.SUBMITTED).count(),
        adjudications=adjudications_of(ids).count(),
        drafts=waiting.count(),
        carrying=tuple(_carrying(successor, olds) for successor in redesign.into),
        jobs=touched_jobs(criterion_ids=ids),
    )


def _carrying(successor: Successor, olds: Sequence[Criterion]) -> LabelCarryOver:
    rows = [row for row in olds if row.key in successor.carries]
    if not rows:
        return LabelCarryOver(successor.spec.key, (), Tally(), Tally())
    ids = [row.pk for row in rows]
    return LabelCarryOver(
        key=successor.spec.key,
        olds=tuple(row.key for row in rows),
        labels=_tally(labels_to_carry(ids), "chat", "rater"),
        adjudications=_tally(adjudications_of(ids), "chat"),
    )


def _tally(rows: QuerySet[Label] | QuerySet[Adjudication], *cell: str) -> Tally:
    """Count cells; those with equal answers on all old criteria carry over."""
    answers = {"yes": Q(value=True), "no": Q(value=False), "na": Q(value=None)}
    counted = {name: Count("pk", filter=which) for name, which in answers.items()}
    cells: QuerySet[Any] = rows.order_by().values(*cell).annotate(**counted)
    differ = Q(yes__gt=0, no__gt=0) | Q(yes__gt=0, na__gt=0) | Q(no__gt=0, na__gt=0)
    conflicts = cells.filter(differ).count()
    return Tally(cells.count() - conflicts, conflicts)


def touched_jobs(*, criterion_ids: Collection[int]) -> tuple[TouchedJob, ...]:
    """Return the jobs that are not closed and ask one of these criteria; one query."""
    ends = Q(criteria__in=criterion_ids)
    goes_on = Q(criteria__state=Criterion.State.ACTIVE) & ~ends
    jobs = LabelingJob.objects.filter(state__in=OPEN_JOBS).order_by("pk")
    counted = jobs.annotate(
        ending=Count("criteria", filter=ends, distinct=True),
        left=Count("criteria", filter=goes_on, distinct=True),
    )
    rows = counted.filter(ending__gt=0).values_list("pk", "name", "left")
    return tuple(TouchedJob(*row) for row in rows)
