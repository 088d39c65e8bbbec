"""The labels of a scope as arrays: one query, however many there are."""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from django.db.models import Case, QuerySet, SmallAutoField, Value, When
from numpy.typing import NDArray

from alignment.core.quality import FALSE, NA, TRUE, Answers, majority_of_others
from alignment.core.quality.answers import Ints
from alignment.selectors.quality.scope import QualityScope
from labeling.models.labels import Adjudication, Assignment, Label

# NB: a number made in SQL, and called an AutoField, because Django converts booleans and integer expressions
# one by one, which takes a third of the time here.
CODE = Case(
    When(value=True, then=Value(TRUE)),
    When(value=False, then=Value(FALSE)),
    default=Value(NA),
    output_field=SmallAutoField(),
)
CODES = {True: TRUE, False: FALSE, None: NA}
COLUMNS = ("pk", "chat_id", "criterion_id", "rater_id", "code", "active_ms")


@dataclass(frozen=True)
class Given:
    """Labels oldest first; `answers` holds their places in the sorted ids beside it."""

    answers: Answers
    chat_ids: Ints
    criterion_ids: Ints
    rater_ids: Ints
    active_ms: Ints

    @cached_property
    def others(self) -> Ints:
        """The strict majority of the other raters, TIED or ALONE."""
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


@dataclass(frozen=True)
class Decided:
    """Labels on which a decision is in force: who gave them, and both values."""

    rater_ids: Ints
    chats: Ints
    reference: Ints
    values: Ints


def given(scope: QualityScope) -> Given:
    """Every counted label of the scope."""
    return _given(_columns(scope.labels))


def _columns(labels: QuerySet[Label]) -> Ints:
    rows = labels.order_by().annotate(code=CODE).values_list(*COLUMNS)
    flat = chain.from_iterable(rows.iterator(chunk_size=10_000))
    return np.fromiter(flat, dtype=np.int64).reshape(-1, len(COLUMNS))


def _given(rows: Ints) -> Given:
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    chat_ids, chats = np.unique(rows[:, 1], return_inverse=True)
    criterion_ids, criteria = np.unique(rows[:, 2], return_inverse=True)
    rater_ids, raters = np.unique(rows[:, 3], return_inverse=True)
    return Given(
        answers=Answers(chats, criteria, raters, rows[:, 4]),
        chat_ids=chat_ids,
        criterion_ids=criterion_ids,
        rater_ids=rater_ids,
        active_ms=rows[:, 5],
    )


def keys_of(chat_ids: Ints, criterion_ids: Ints) -> Ints:
    """One number for each (chat, criterion), by their primary keys."""
    return chat_ids * 2**20 + criterion_ids


def gold_rows(scope: QualityScope) -> Ints:
    """The labels given on gold chats of the scope's jobs, which need not be chats of its set."""
    jobs = scope.assignments.filter(kind=Assignment.Kind.GOLD)
    labels = Label.objects.counted().filter(
        assignment__in=jobs.values("pk"), criterion__in=[row.pk for row in scope.criteria]
    )
    return _columns(labels)


def decisions(scope: QualityScope) -> tuple[Ints, Ints]:
    """Keys, sorted, and values of the adjudications in force on the scope's criteria."""
    rows = Adjudication.objects.filter(replaced_at=None, criterion__in=[row.pk for row in scope.criteria])
    found: list[Any] = list(rows.values_list("chat_id", "criterion_id", "value"))
    chats = np.array([row[0] for row in found], dtype=np.int64)
    criteria = np.array([row[1] for row in found], dtype=np.int64)
    keys, values = keys_of(chats, criteria), np.array([CODES[row[2]] for row in found], dtype=np.int64)
    order = np.argsort(keys)
    return keys[order], values[order]


def decided_and_gold(scope: QualityScope, found: Given) -> tuple[Decided, Decided]:
    """The scope's labels against decisions without the gold chats, and those on the gold chats."""
    keys, values = decisions(scope)
    gold = gold_rows(scope)
    answers = found.answers
    rater_ids = found.rater_ids[answers.raters]
    ids = np.column_stack([found.keys, rater_ids])
    on_gold = _among(ids, np.column_stack([keys_of(gold[:, 1], gold[:, 2]), gold[:, 3]]))
    plain = ~on_gold
    return (
        _decided(found.keys[plain], rater_ids[plain], answers.values[plain], keys, values),
        _decided(keys_of(gold[:, 1], gold[:, 2]), gold[:, 3], gold[:, 4], keys, values),
    )


def _among(rows: Ints, others: Ints) -> NDArray[np.bool_]:
    """Which rows (key, rater) also stand in the others."""
    if not len(others):
        return np.zeros(len(rows), dtype=bool)
    maybe = np.isin(rows[:, 0], others[:, 0])
    known = set(map(tuple, others.tolist()))
    places = np.flatnonzero(maybe)
    maybe[places] = [tuple(row) in known for row in rows[places].tolist()]
    return maybe


def _decided(keys: Ints, rater_ids: Ints, values: Ints, decided: Ints, decision: Ints) -> Decided:
    place = np.searchsorted(decided, keys)
    place[place == decided.size] = 0
    known = decided[place] == keys if decided.size else np.zeros(keys.size, dtype=bool)
    return Decided(rater_ids[known], keys[known] >> 20, decision[place[known]], values[known])
