"""Lineage of a criterion: predecessors and successors, for pages and programs."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Criterion, CriterionLineage, CriterionVersion

# Audit verbs of a retired criterion, by kind of redesign, and of a reactivated one.
ENDED = {
    "retire": "criterion retired",
    "replace": "criterion replaced",
    "split": "criterion split",
    "merge": "criterion merged",
}
BROUGHT_BACK = "criterion reactivated"


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A retired criterion, and whether its labels carried over."""

    criterion: Criterion
    labels_carried: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One redesign: all criteria that it retired, and one or all that replaced them."""

    kind: str
    olds: tuple[Ancestor, ...]
    new: tuple[Criterion, ...]
    reason: str
    by: User | None
    at: datetime

    @property
    def new_keys(self) -> list[str]:
        """Keys of the new criteria."""
        return [row.key for row in self.new]

    @property
    def words(self) -> str:
        """Return Split, Merged or Replaced."""
        return CriterionLineage.Kind(self.kind).label

    @property
    def carried_from(self) -> tuple[Criterion, ...]:
        """Retired criteria whose labels carried over."""
        return tuple(old.criterion for old in self.olds if old.labels_carried)


@dataclass(frozen=True, slots=True)
class Retirement:
    """When a criterion was retired, by whom and why; `replaced`: other criteria replaced it."""

    replaced: bool
    reason: str
    by: User | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Lineage:
    """The lineage of one criterion.

    `made_of` is None for a criterion that replaced none; `became` is oldest first. `retired` is None for an
    active criterion, and for one that a rubric file retired.
    """

    criterion: Criterion
    made_of: Step | None
    became: tuple[Step, ...]
    retired: Retirement | None

    @property
    def is_retired(self) -> bool:
        """Whether the criterion is retired."""
        return self.criterion.state == Criterion.State.RETIRED

    @property
    def endings(self) -> list[tuple[Step, list[Criterion]]]:
        """Redesigns that retired it, each with the other criteria that it retired."""
        rows = [(step, [old.criterion for old in step.olds]) for step in self.became]
        return [(step, [row for row in olds if row != self.criterion]) for step, olds in rows]

    @property
    def told(self) -> bool:
        """Whether there is any lineage to show."""
        return bool(self.made_of or self.became or self.is_retired)


@dataclass(frozen=True, slots=True)
class RetiredRow:
    """A retired criterion with its last text and its replacements, if any."""

    criterion: Criterion
    version: CriterionVersion
    became: tuple[Criterion, ...]
    retired: Retirement | None


def lineage_of(criterion: Criterion) -> Lineage:
    """Return the lineage of one criterion, in three queries."""
    rows = _rows([criterion])
    became = [row.new_id for row in rows if row.old_id == criterion.pk]
    own = [row for row in rows if row.new_id == criterion.pk]
    steps = _steps(row for row in rows if row.new_id in became)
    return Lineage(
        criterion=criterion,
        made_of=next(iter(_steps(own)), None),
        became=tuple(steps),
        retired=_retirements([criterion]).get(criterion.pk),
    )


def retired_criteria() -> list[RetiredRow]:
    """List the retired criteria in the rubrics' order, in four queries."""
    criteria = list(
        Criterion.objects.filter(state=Criterion.State.RETIRED)
        .select_related("dimension", "rubric")
        .order_by("rubric", "dimension__position", "position", "pk")
    )
    retirements = _retirements(criteria)
    versions = {
        row.criterion_id: row
        for row in CriterionVersion.objects.filter(criterion__in=criteria).order_by("number")
    }
    became: dict[int, list[Criterion]] = {}
    for row in CriterionLineage.objects.filter(old__in=criteria).select_related("new"):
        became.setdefault(row.old_id, []).append(row.new)
    return [
        RetiredRow(row, versions[row.pk], tuple(became.get(row.pk, ())), retirements.get(row.pk))
        for row in criteria
    ]


def _rows(criteria: Collection[Criterion]) -> list[CriterionLineage]:
    """Return all rows of the redesigns that involve these criteria."""
    new = CriterionLineage.objects.filter(Q(old__in=criteria) | Q(new__in=criteria)).values("new")
    return list(CriterionLineage.objects.filter(new__in=new).select_related("old", "new", "by"))


def _steps(rows: Iterable[CriterionLineage]) -> list[Step]:
    """Group rows with the same time into steps."""
    by_time: dict[datetime, list[CriterionLineage]] = {}
    for row in rows:
        by_time.setdefault(row.at, []).append(row)
    return [_step(part) for part in by_time.values()]


def _step(rows: Sequence[CriterionLineage]) -> Step:
    olds = {row.old_id: row.old for row in rows}
    carried = {row.old_id for row in rows if row.carries_labels}
    return Step(
        kind=rows[0].kind,
        olds=tuple(Ancestor(old, pk in carried) for pk, old in olds.items()),
        new=tuple({row.new_id: row.new for row in rows}.values()),
        reason=rows[0].reason,
        by=rows[0].by,
        at=rows[0].at,
    )


def _retirements(criteria: Collection[Criterion]) -> dict[int, Retirement]:
    """Return the audit log's retirements of retired criteria, by id."""
    ids = [row.pk for row in criteria if row.state == Criterion.State.RETIRED]
    if not ids:
        return {}
    events = AuditEvent.objects.filter(
        object_type=Criterion._meta.label_lower, object_id__in=ids, verb__in=[*ENDED.values(), BROUGHT_BACK]
    )
    newest = {event.object_id: event for event in events.select_related("actor").order_by("pk")}
    return {
        pk: Retirement(event.verb != ENDED["retire"], event.detail["reason"], event.actor, event.at)
        for pk, event in newest.items()
        if event.verb != BROUGHT_BACK
    }
