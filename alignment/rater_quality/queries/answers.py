"""The labels of a scope as arrays, read in one query."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from django.db.models import BigAutoField, Case, Func, Q, QuerySet, SmallAutoField, Value, When
from numpy.typing import NDArray

from alignment.rater_quality.core import FALSE, NA, TRUE, Answers, majority_of_others
from alignment.rater_quality.core.answers import Ints
from alignment.rater_quality.queries.scope import QualityScope
from labeling.models.labels import Adjudication, Assignment, Label


class Milliseconds(Func):
    """A time as whole milliseconds since 1970."""

    template = "CAST(EXTRACT(EPOCH FROM %(expressions)s) * 1000 AS BIGINT)"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Convert the Julian day of SQLite."""
        days = "CAST(round((julianday(%(expressions)s) - 2440587.5) * 86400000) AS INTEGER)"
        return self.as_sql(compiler, connection, template=days, **context)


# NB: the database converts to numbers, and the fields are called AutoField, because Django would convert
# times, booleans and integer expressions one by one, a third of the time here.
GIVEN = Milliseconds("given_at", output_field=BigAutoField())
CODE = Case(
    When(value=True, then=Value(TRUE)),
    When(value=False, then=Value(FALSE)),
    default=Value(NA),
    output_field=SmallAutoField(),
)
CODES = {True: TRUE, False: FALSE, None: NA}
COLUMNS = ("given", "pk", "chat_id", "criterion_id", "rater_id", "code")


@dataclass(frozen=True)
class Labels:
    """Labels, oldest first. `answers` has indexes into the sorted ids, `times` are in milliseconds."""

    label_ids: Ints
    answers: Answers
    chat_ids: Ints
    criterion_ids: Ints
    rater_ids: Ints
    times: Ints

    @cached_property
    def others(self) -> Ints:
        """The strict majority of the other raters by label, TIED or ALONE."""
        return majority_of_others(self.answers)

    @cached_property
    def keys(self) -> Ints:
        """One number for each (chat, criterion)."""
        answers = self.answers
        return keys_of(self.chat_ids[answers.chats], self.criterion_ids[answers.criteria])

    @property
    def by_rater(self) -> Ints:
        """Number of labels of each rater."""
        return np.bincount(self.answers.raters, minlength=len(self.rater_ids))

    @cached_property
    def periods(self) -> dict[int, tuple[datetime, datetime]]:
        """The first and the last label of each rater, by id."""
        raters = self.answers.raters
        first = self.times[np.unique(raters, return_index=True)[1]]
        last = self.times[::-1][np.unique(raters[::-1], return_index=True)[1]]
        return {
            rater: (_moment(start), _moment(end))
            for rater, start, end in zip(self.rater_ids.tolist(), first.tolist(), last.tolist(), strict=True)
        }


@dataclass(frozen=True)
class AdjudicatedLabels:
    """Labels with an adjudication: their raters, and both values."""

    rater_ids: Ints
    chats: Ints
    reference: Ints
    values: Ints


def scope_labels(scope: QualityScope) -> Labels:
    """Read every counted label of the scope; in a job only on chats that the rater submitted in it."""
    rows = _columns(Label.objects.counted().filter(scope.on_criteria, scope.on_chats))
    return _labels(rows if scope.job is None else _submitted(rows, scope.assignments))


def gold_labels(scope: QualityScope) -> Labels:
    """Read the labels on gold chats of the scope's jobs, which need not be in its set."""
    gold = scope.assignments.filter(kind=Assignment.Kind.GOLD)
    labels = Label.objects.counted().filter(scope.on_criteria, chat__in=gold.values("chat"))
    return _labels(_submitted(_columns(labels), gold))


def _columns(labels: QuerySet[Label]) -> Ints:
    return _numbers(labels.annotate(given=GIVEN, code=CODE), *COLUMNS)


def _numbers(rows: QuerySet[Any], *names: str) -> Ints:
    """Read integer columns, shape (rows, columns)."""
    values = rows.order_by().values_list(*names).iterator(chunk_size=10_000)
    return np.fromiter(chain.from_iterable(values), dtype=np.int64).reshape(-1, len(names))


def _submitted(rows: Ints, assignments: QuerySet[Assignment]) -> Ints:
    """Keep the labels on chats that their raters submitted in these assignments.

    NB: a label's own assignment is that of the job in which it was submitted last. Not in SQL, because no
    form of the query is fast on both databases.
    """
    done = assignments.filter(state=Assignment.State.SUBMITTED)
    chats, raters = _numbers(done, "chat_id", "rater_id").T
    return rows[np.isin(_pairs(rows[:, 2], rows[:, 4]), _pairs(chats, raters))]


def _pairs(chat_ids: Ints, rater_ids: Ints) -> Ints:
    """One number for each (chat, rater)."""
    return chat_ids * 2**32 + rater_ids


def _labels(rows: Ints) -> Labels:
    times, label_ids, chat, criterion, rater, codes = rows[np.lexsort((rows[:, 1], rows[:, 0]))].T
    chat_ids, chats = np.unique(chat, return_inverse=True)
    criterion_ids, criteria = np.unique(criterion, return_inverse=True)
    rater_ids, raters = np.unique(rater, return_inverse=True)
    return Labels(
        label_ids=label_ids,
        answers=Answers(chats, criteria, raters, codes),
        chat_ids=chat_ids,
        criterion_ids=criterion_ids,
        rater_ids=rater_ids,
        times=times,
    )


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def keys_of(chat_ids: Ints, criterion_ids: Ints) -> Ints:
    """One number for each (chat, criterion), by their primary keys."""
    return chat_ids * 2**20 + criterion_ids


def decisions(scope: QualityScope) -> tuple[Ints, Ints]:
    """Return sorted keys and values of the current adjudications, gold chats outside the set included."""
    gold = scope.assignments.filter(kind=Assignment.Kind.GOLD).values("chat")
    rows = Adjudication.objects.filter(scope.on_criteria, scope.on_chats | Q(chat__in=gold), replaced_at=None)
    adjudications: list[Any] = list(rows.values_list("chat_id", "criterion_id", "value"))
    chats = np.array([row[0] for row in adjudications], dtype=np.int64)
    criteria = np.array([row[1] for row in adjudications], dtype=np.int64)
    keys, values = (
        keys_of(chats, criteria),
        np.array([CODES[row[2]] for row in adjudications], dtype=np.int64),
    )
    order = np.argsort(keys)
    return keys[order], values[order]


def decided_and_gold(scope: QualityScope, labels: Labels) -> tuple[AdjudicatedLabels, AdjudicatedLabels]:
    """Return the adjudicated labels outside gold chats, and those on gold chats."""
    gold, known = gold_labels(scope), decisions(scope)
    everything = np.ones(len(gold.answers), dtype=bool)
    return _decided(labels, ~np.isin(labels.label_ids, gold.label_ids), *known), _decided(
        gold, everything, *known
    )


def _decided(labels: Labels, chosen: NDArray[np.bool_], decided: Ints, decision: Ints) -> AdjudicatedLabels:
    """Keep the chosen labels that have an adjudication."""
    place = np.searchsorted(decided, labels.keys)
    place[place == decided.size] = 0
    known = chosen & (decided[place] == labels.keys if decided.size else False)
    raters = labels.rater_ids[labels.answers.raters[known]]
    return AdjudicatedLabels(
        raters, labels.keys[known] >> 20, decision[place[known]], labels.answers.values[known]
    )
