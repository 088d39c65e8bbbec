"""Each rater of a scope: progress, agreement with the others and with decisions, pace."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from django.db.models import Count, Q
from numpy.typing import NDArray

from alignment.rater_quality.core import ALONE, TIED, Agreement, agreements, pooled
from alignment.rater_quality.core.answers import Ints
from alignment.rater_quality.core.trend import course
from alignment.rater_quality.queries.answers import Decided, Given, decided_and_gold
from alignment.rater_quality.queries.pace import Pace, paces, timed
from alignment.rater_quality.queries.scope import QualityScope
from alignment.statistics.estimates import Estimate
from labeling.models.labels import EXPIRED, Assignment, Label, LabelRevision
from labeling.models.people import Rater


@dataclass(frozen=True, slots=True)
class Progress:
    """Chats of a rater's assignments; `reasons` of the skipped ones, most frequent first."""

    submitted: int = 0
    in_work: int = 0
    skipped: int = 0
    reasons: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Person:
    """Who gave labels or took chats here."""

    id: int
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class RaterRow:
    """
    One rater. `others`: against the majority of the others, without the `tied` and `alone` answers.

    `decided` and `gold` are against the decisions in force; `course` is agreement with the others by tenths,
    empty where all labels came at once; `changed` counts answers changed after the judge's view.
    """

    person: Person
    labels: int
    others: Agreement
    tied: int
    alone: int
    decided: Agreement
    gold: Agreement
    progress: Progress = field(default_factory=Progress)
    pace: Pace = field(default_factory=Pace)
    course: Sequence[Estimate] = ()
    first: datetime | None = None
    last: datetime | None = None
    changed: int = 0


def people_of(scope: QualityScope, found: Given) -> list[Person]:
    """Whoever gave a label or took a chat here, by name."""
    taken = scope.assignments.filter(rater__isnull=False).values("rater_id")
    rows = Rater.objects.filter(Q(pk__in=found.rater_ids.tolist()) | Q(pk__in=taken)).order_by("name")
    return [Person(*row) for row in rows.values_list("pk", "name", "kind")]


def together(found: Given) -> Agreement:
    """Every answer against the majority of the others: what the raters can be read against."""
    compared = found.others >= 0
    answers = found.answers.where(compared)
    return pooled(chats=answers.chats, reference=found.others[compared], values=answers.values)


def rater_rows(scope: QualityScope, found: Given, people: Sequence[Person]) -> list[RaterRow]:
    """These people's figures, in the same order; the number of queries depends on nothing."""
    ids = [person.id for person in people]
    figures = _Figures(scope, found, ids)
    progress, changed = _progress(scope, ids), _changed(scope)
    pace = paces(timed(scope.assignments.filter(rater__in=ids)))
    return [
        RaterRow(
            person=person,
            labels=int(figures.labels[place]),
            others=figures.others[place],
            tied=int(figures.tied[place]),
            alone=int(figures.alone[place]),
            decided=figures.decided[place],
            gold=figures.gold[place],
            progress=progress.get(person.id, Progress()),
            pace=pace.get(person.id, Pace()),
            # Labels of one import have no order in time.
            course=figures.course(place) if len(set(found.periods.get(person.id, ()))) > 1 else (),
            first=found.periods.get(person.id, (None, None))[0],
            last=found.periods.get(person.id, (None, None))[1],
            changed=changed.get(person.id, 0),
        )
        for place, person in enumerate(people)
    ]


class _Figures:
    """What is computed from the labels of some raters, by their place among `ids`."""

    def __init__(self, scope: QualityScope, found: Given, ids: Sequence[int]) -> None:
        self.ids = np.array(sorted(ids), dtype=np.int64)
        self.order = np.searchsorted(self.ids, np.array(ids, dtype=np.int64))
        rater_ids = found.rater_ids[found.answers.raters]
        mine = np.isin(rater_ids, self.ids)
        self.raters = self._places(rater_ids[mine])
        self.reference = found.others[mine]
        answers = found.answers.where(mine)
        compared = self.reference >= 0
        self._agrees = self._by_rater(compared, answers.values == self.reference)
        self.labels, self.tied, self.alone = (
            self._count(chosen)
            for chosen in (
                np.ones(mine.sum(), bool),
                ~compared & (self.reference == TIED),
                self.reference == ALONE,
            )
        )
        self.others = self._agreements(
            self.raters[compared], answers.chats[compared], self.reference[compared], answers.values[compared]
        )
        decided, gold = decided_and_gold(scope, found)
        self.decided, self.gold = self._decided(decided), self._decided(gold)

    def _places(self, rater_ids: Ints) -> Ints:
        """Places of these raters in the order asked for."""
        back = np.empty(self.ids.size, dtype=np.int64)
        back[self.order] = np.arange(self.ids.size)
        return back[np.searchsorted(self.ids, rater_ids)]

    def _by_rater(self, chosen: NDArray[np.bool_], values: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """The chosen ones of these values, oldest first, by place of the rater."""
        raters = self.raters[chosen]
        ends = np.cumsum(np.bincount(raters, minlength=self.ids.size))[:-1]
        return np.split(values[chosen][np.argsort(raters, kind="stable")], ends)

    def _count(self, chosen: NDArray[np.bool_]) -> Ints:
        return np.bincount(self.raters[chosen], minlength=self.ids.size)

    def _agreements(self, raters: Ints, chats: Ints, reference: Ints, values: Ints) -> list[Agreement]:
        return agreements(
            raters=raters, chats=chats, reference=reference, values=values, number=self.ids.size
        )

    def _decided(self, rows: Decided) -> list[Agreement]:
        mine = np.isin(rows.rater_ids, self.ids)
        return self._agreements(
            self._places(rows.rater_ids[mine]), rows.chats[mine], rows.reference[mine], rows.values[mine]
        )

    def course(self, place: int) -> list[Estimate]:
        """Agreement with the others by tenths, oldest first."""
        return course(self._agrees[place].tolist())


def _progress(scope: QualityScope, ids: Sequence[int]) -> dict[int, Progress]:
    kept = scope.assignments.filter(rater__in=ids).exclude(skip_reason=EXPIRED)  # a lost chat was not skipped
    rows = kept.values_list("rater_id", "state", "skip_reason")
    states: dict[int, dict[str, int]] = {}
    reasons: dict[int, dict[str, int]] = {}
    for rater, state, reason, n in rows.annotate(n=Count("pk")):
        counts = states.setdefault(rater, {})
        counts[state] = counts.get(state, 0) + n
        if state == Assignment.State.SKIPPED:
            code = reason.partition(":")[0]  # "other: two chats in one"
            told = reasons.setdefault(rater, {})
            told[code] = told.get(code, 0) + n
    return {
        rater: Progress(
            submitted=counts.get(Assignment.State.SUBMITTED, 0),
            in_work=counts.get(Assignment.State.LEASED, 0),
            skipped=counts.get(Assignment.State.SKIPPED, 0),
            reasons=tuple(sorted(reasons.get(rater, {}).items(), key=lambda pair: (-pair[1], pair[0]))),
        )
        for rater, counts in states.items()
    }


# Over all raters of the scope: naming them in the query leads databases to worse plans.
def _changed(scope: QualityScope) -> dict[int, int]:
    """Answers changed or given after the judge's view, by rater; none of them counts."""
    revealed = scope.assignments.filter(revealed_at__isnull=False)
    late = LabelRevision.objects.filter(label__assignment__in=revealed.values("pk"), post_reveal=True)
    where = Q(assignment__job=scope.job) if scope.job else scope.on_chats
    rows = Label.objects.filter(
        Q(post_reveal=True) | Q(pk__in=late.values("label")), scope.on_criteria, where
    )
    return dict(rows.order_by().values_list("rater_id").annotate(Count("pk")))
