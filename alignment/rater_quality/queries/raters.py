"""Raters of a scope: progress, agreement with the others and with decisions, pace."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from django.db.models import Count, Q
from numpy.typing import NDArray

from alignment.rater_quality.core import ALONE, TIED, Agreement, agreements, pooled
from alignment.rater_quality.core.answers import Ints
from alignment.rater_quality.core.trend import trend
from alignment.rater_quality.queries.answers import AdjudicatedLabels, Labels, decided_and_gold
from alignment.rater_quality.queries.pace import Pace, paces, timed_chats
from alignment.rater_quality.queries.scope import QualityScope
from alignment.statistics.estimates import Estimate
from labeling.models.labels import EXPIRED, Assignment, Label, LabelRevision
from labeling.models.people import Rater


@dataclass(frozen=True, slots=True)
class Progress:
    """Chats of a rater's assignments; `reasons` of skipped ones, most frequent first."""

    submitted: int = 0
    in_work: int = 0
    skipped: int = 0
    reasons: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Person:
    """A rater with labels or assignments in the scope."""

    id: int
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class RaterRow:
    """
    Statistics of one rater.

    others : against the majority of the others, without `tied` and `alone` answers.
    decided, gold : against current decisions. trend : agreement with the others by tenths; empty if all
    labels have the same time. changed : answers changed after the judge's view was shown.
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
    trend: Sequence[Estimate] = ()
    first: datetime | None = None
    last: datetime | None = None
    changed: int = 0


def people_of(scope: QualityScope, labels: Labels) -> list[Person]:
    """Return raters with a label or an assignment in the scope, by name."""
    taken = scope.assignments.filter(rater__isnull=False).values("rater_id")
    rows = Rater.objects.filter(Q(pk__in=labels.rater_ids.tolist()) | Q(pk__in=taken)).order_by("name")
    return [Person(*row) for row in rows.values_list("pk", "name", "kind")]


def overall_agreement(labels: Labels) -> Agreement:
    """Compute the agreement of all answers with the majority of the others."""
    compared = labels.others >= 0
    answers = labels.answers.where(compared)
    return pooled(chats=answers.chats, reference=labels.others[compared], values=answers.values)


def rater_rows(scope: QualityScope, labels: Labels, people: Sequence[Person]) -> list[RaterRow]:
    """Return the statistics of these raters in the same order, in a fixed number of queries."""
    ids = [person.id for person in people]
    statistics = _Statistics(scope, labels, ids)
    progress, changed = _progress(scope, ids), _changed(scope)
    pace = paces(timed_chats(scope.assignments.filter(rater__in=ids)))
    return [
        RaterRow(
            person=person,
            labels=int(statistics.labels[place]),
            others=statistics.others[place],
            tied=int(statistics.tied[place]),
            alone=int(statistics.alone[place]),
            decided=statistics.decided[place],
            gold=statistics.gold[place],
            progress=progress.get(person.id, Progress()),
            pace=pace.get(person.id, Pace()),
            # Labels of one import have no time order.
            trend=statistics.trend(place) if len(set(labels.periods.get(person.id, ()))) > 1 else (),
            first=labels.periods.get(person.id, (None, None))[0],
            last=labels.periods.get(person.id, (None, None))[1],
            changed=changed.get(person.id, 0),
        )
        for place, person in enumerate(people)
    ]


class _Statistics:
    """Statistics of raters from their labels, by index in `ids`."""

    def __init__(self, scope: QualityScope, labels: Labels, ids: Sequence[int]) -> None:
        self.ids = np.array(sorted(ids), dtype=np.int64)
        self.order = np.searchsorted(self.ids, np.array(ids, dtype=np.int64))
        rater_ids = labels.rater_ids[labels.answers.raters]
        mine = np.isin(rater_ids, self.ids)
        self.raters = self._indexes(rater_ids[mine])
        self.reference = labels.others[mine]
        answers = labels.answers.where(mine)
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
        decided, gold = decided_and_gold(scope, labels)
        self.decided, self.gold = self._decided(decided), self._decided(gold)

    def _indexes(self, rater_ids: Ints) -> Ints:
        """Return indexes of these raters in the order of the rows."""
        back = np.empty(self.ids.size, dtype=np.int64)
        back[self.order] = np.arange(self.ids.size)
        return back[np.searchsorted(self.ids, rater_ids)]

    def _by_rater(self, chosen: NDArray[np.bool_], values: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """Group the chosen values by rater, oldest first."""
        raters = self.raters[chosen]
        ends = np.cumsum(np.bincount(raters, minlength=self.ids.size))[:-1]
        return np.split(values[chosen][np.argsort(raters, kind="stable")], ends)

    def _count(self, chosen: NDArray[np.bool_]) -> Ints:
        return np.bincount(self.raters[chosen], minlength=self.ids.size)

    def _agreements(self, raters: Ints, chats: Ints, reference: Ints, values: Ints) -> list[Agreement]:
        return agreements(
            raters=raters, chats=chats, reference=reference, values=values, number=self.ids.size
        )

    def _decided(self, rows: AdjudicatedLabels) -> list[Agreement]:
        mine = np.isin(rows.rater_ids, self.ids)
        return self._agreements(
            self._indexes(rows.rater_ids[mine]), rows.chats[mine], rows.reference[mine], rows.values[mine]
        )

    def trend(self, place: int) -> list[Estimate]:
        """Agreement with the others by tenths, oldest first."""
        return trend(self._agrees[place].tolist())


def _progress(scope: QualityScope, ids: Sequence[int]) -> dict[int, Progress]:
    rows = scope.assignments.filter(rater__in=ids).exclude(skip_reason=EXPIRED)  # an expired lease is no skip
    counts_of = rows.values_list("rater_id", "state", "skip_reason")
    states: dict[int, dict[str, int]] = {}
    reasons: dict[int, dict[str, int]] = {}
    for rater, state, reason, n in counts_of.annotate(n=Count("pk")):
        counts = states.setdefault(rater, {})
        counts[state] = counts.get(state, 0) + n
        if state == Assignment.State.SKIPPED:
            code = reason.partition(":")[0]  # "other: two chats in one"
            codes = reasons.setdefault(rater, {})
            codes[code] = codes.get(code, 0) + n
    return {
        rater: Progress(
            submitted=counts.get(Assignment.State.SUBMITTED, 0),
            in_work=counts.get(Assignment.State.LEASED, 0),
            skipped=counts.get(Assignment.State.SKIPPED, 0),
            reasons=tuple(sorted(reasons.get(rater, {}).items(), key=lambda pair: (-pair[1], pair[0]))),
        )
        for rater, counts in states.items()
    }


# For all raters of the scope: with a list of raters, databases choose slower plans.
def _changed(scope: QualityScope) -> dict[int, int]:
    """Count answers given or changed after the judge's view, by rater; they are excluded elsewhere."""
    revealed = scope.assignments.filter(revealed_at__isnull=False)
    late = LabelRevision.objects.filter(label__assignment__in=revealed.values("pk"), post_reveal=True)
    where = Q(assignment__job=scope.job) if scope.job else scope.on_chats
    rows = Label.objects.filter(
        Q(post_reveal=True) | Q(pk__in=late.values("label")), scope.on_criteria, where
    )
    return dict(rows.order_by().values_list("rater_id").annotate(Count("pk")))
