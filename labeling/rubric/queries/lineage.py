"""Lineage and history of a criterion: predecessors, successors, retirements, for pages and programs."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

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
RETIRED = Criterion.State.RETIRED


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


EventKind = Literal["made", "retire", "replace", "split", "merge", "bring_back"]
_WORDS: dict[EventKind, str] = {
    "made": "Made",
    "retire": "Retired",
    "replace": "Replaced",
    "split": "Split",
    "merge": "Merged",
    "bring_back": "Brought back",
}
EVENT_KINDS = tuple(_WORDS)
_LOGGED: dict[str, EventKind] = {ENDED["retire"]: "retire", BROUGHT_BACK: "bring_back"}


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """
    An event in the history of a criterion.

    `others` are those that it was made from or merged with, `new` those that replaced it.
    """

    kind: EventKind
    reason: str
    by: User | None
    at: datetime
    others: tuple[Criterion, ...] = ()
    new: tuple[Criterion, ...] = ()

    @property
    def words(self) -> str:
        """Return one or two words for the page."""
        return _WORDS[self.kind]

    @property
    def other_keys(self) -> list[str]:
        """Keys of the other criteria."""
        return [row.key for row in self.others]

    @property
    def new_keys(self) -> list[str]:
        """Keys of the replacements."""
        return [row.key for row in self.new]


@dataclass(frozen=True, slots=True)
class Lineage:
    """The lineage of one criterion.

    `made_of` is None for a criterion that replaced none; `became` is oldest first. `retired` is None for an
    active criterion, and for one retired before the audit log recorded it. `history` is newest first.
    """

    criterion: Criterion
    made_of: Step | None
    became: tuple[Step, ...]
    retired: Retirement | None
    history: tuple[HistoryEvent, ...]

    @property
    def is_retired(self) -> bool:
        """Whether the criterion is retired."""
        return self.criterion.state == RETIRED

    @property
    def ending(self) -> HistoryEvent | None:
        """The event that retired a retired criterion."""
        newest = next((one for one in self.history if one.kind != "made"), None)
        return newest if self.is_retired and newest and newest.kind != "bring_back" else None

    @property
    def told(self) -> bool:
        """Whether the page's head has anything to show."""
        return bool(self.made_of or self.is_retired)


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
    made_of = next(iter(_steps(row for row in rows if row.new_id == criterion.pk)), None)
    steps = tuple(_steps(row for row in rows if row.new_id in became))
    events = _events([criterion])
    return Lineage(
        criterion=criterion,
        made_of=made_of,
        became=steps,
        retired=_retirements(events).get(criterion.pk) if criterion.state == RETIRED else None,
        history=_history(criterion, made_of, steps, events),
    )


def _history(
    criterion: Criterion, made_of: Step | None, became: Iterable[Step], events: Iterable[AuditEvent]
) -> tuple[HistoryEvent, ...]:
    """Return events, newest first: redesigns from the lineage, retiring and bringing back from the log."""
    found = [_event_of(step, without=criterion, new=step.new) for step in became]
    found += [_event_of(made_of, kind="made")] if made_of else []
    found += [
        HistoryEvent(kind, event.detail["reason"], event.actor, event.at)
        for event in events
        if (kind := _LOGGED.get(event.verb))
    ]
    return tuple(sorted(found, key=lambda one: one.at, reverse=True))


def _event_of(
    step: Step,
    *,
    kind: EventKind | None = None,
    without: Criterion | None = None,
    new: tuple[Criterion, ...] = (),
) -> HistoryEvent:
    others = tuple(old.criterion for old in step.olds if old.criterion != without)
    return HistoryEvent(kind or cast(EventKind, step.kind), step.reason, step.by, step.at, others, new)


def retired_criteria() -> list[RetiredRow]:
    """List the retired criteria in the rubrics' order, in four queries."""
    criteria = list(
        Criterion.objects.filter(state=RETIRED)
        .select_related("dimension", "rubric")
        .order_by("rubric", "dimension__position", "position", "pk")
    )
    retirements = _retirements(_events(criteria))
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


def _events(criteria: Collection[Criterion]) -> list[AuditEvent]:
    """Return the audit log's retirements of these criteria, and those that ended, oldest first."""
    if not criteria:
        return []
    events = AuditEvent.objects.filter(
        object_type=Criterion._meta.label_lower,
        object_id__in=[row.pk for row in criteria],
        verb__in=[*ENDED.values(), BROUGHT_BACK],
    )
    return list(events.select_related("actor").order_by("pk"))


def _retirements(events: Iterable[AuditEvent]) -> dict[int, Retirement]:
    """Return the retirements that have not ended, by criterion id."""
    newest = {event.object_id: event for event in events}
    return {
        pk: Retirement(event.verb != ENDED["retire"], event.detail["reason"], event.actor, event.at)
        for pk, event in newest.items()
        if event.verb != BROUGHT_BACK
    }
