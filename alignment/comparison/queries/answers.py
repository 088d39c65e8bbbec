"""The answers of people and judge as arrays, one position a chat."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Case, Count, Exists, IntegerField, OuterRef, QuerySet, Subquery, Value, When
from numpy.typing import NDArray

from alignment.comparison.core.codes import (
    Codes,
    CriterionData,
    CriterionSpec,
    HumanCode,
    JudgeCode,
    ReportData,
)
from alignment.comparison.core.question_versions import Questions
from alignment.comparison.queries.inclusion_probabilities import Chances, draw_chances
from alignment.comparison.queries.scope import Scope
from alignment.statistics.agreement import Confusion
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, Verdict
from labeling.models.labels import Consensus, Label
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion

AT_ONCE = 5000
HUMAN_STATES = {
    Consensus.State.TRUE: HumanCode.TRUE,
    Consensus.State.FALSE: HumanCode.FALSE,
    Consensus.State.NA: HumanCode.NA,
    Consensus.State.UNRESOLVED: HumanCode.UNRESOLVED,
}
VALUES = {True: HumanCode.TRUE, False: HumanCode.FALSE, None: HumanCode.NA}
JUDGE_VALUES = {True: JudgeCode.TRUE, False: JudgeCode.FALSE, None: JudgeCode.NA}
JUDGE_STATES = {
    Verdict.State.UNPARSED: JudgeCode.UNPARSED,
    Verdict.State.REFUSED: JudgeCode.REFUSED,
    Verdict.State.CUT_OFF: JudgeCode.CUT_OFF,
    Verdict.State.TOO_LONG: JudgeCode.TOO_LONG,
    Verdict.State.FAILED: JudgeCode.FAILED,
}


def coded(column: str, codes: Mapping[Any, int], default: Case | int | None = None) -> Case:
    """The code of each value of a column, looked up by the database; `default` for values that have none."""
    found = [When(**lookup(column, value), then=Value(int(code))) for value, code in codes.items()]
    rest = Value(default) if isinstance(default, int) else default
    return Case(*found, default=rest, output_field=IntegerField())


def lookup(column: str, value: Any) -> dict[str, Any]:
    """The filter on one value; None is looked up as such."""
    return {f"{column}__isnull": True} if value is None else {column: value}


class UnknownRater(ValueError):
    """The report is asked against a rater who gave no label here."""


@dataclass(frozen=True)
class Chats:
    """The covered chats: external ids and primary keys, in order."""

    external_ids: list[str]
    ids: NDArray[np.int64]

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Where the chats with these primary keys stand; all of them have to be covered."""
        return places_in(self.ids, ids)


def places_in(ids: Sequence[int] | NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where each of the wanted ids stands among the ids, which hold them all."""
    known = np.asarray(ids, dtype=np.int64)
    order = np.argsort(known)
    return order[np.searchsorted(known, wanted, sorter=order)]


def columns_of(rows: QuerySet[Any], **columns: Any) -> NDArray[Any]:
    """Whole numbers of each row as a structured array, without an object for any of a million rows."""
    names = [(name, np.int64) for name in columns]
    try:
        asked = rows.order_by().values_list(*columns.values()).query.sql_with_params()
    except EmptyResultSet:
        return np.empty(0, dtype=names)
    with connection.chunked_cursor() as cursor:
        cursor.execute(*asked)
        found = chain.from_iterable(iter(partial(cursor.fetchmany, AT_ONCE), []))
        return np.fromiter(found, dtype=names)


def report_data(scope: Scope, verdicts: NDArray[Any] | None = None) -> ReportData:
    """Load everything a report is computed from; the number of queries does not depend on chats or labels.

    `verdicts` of the scope's run, where the caller has read them.
    """
    chats = covered_chats(scope)
    human, counts = _human(scope, chats)
    judge = None
    if scope.run is not None:
        read = verdict_rows(scope.run, scope) if verdicts is None else verdicts
        judge = _judge_codes(scope, chats, read)
    passes, given = _passes_when(scope.criteria), _given(scope)
    tables = _rater_tables(scope) if scope.each_rater and judge is not None else {}
    questions = _questions(scope, given)
    drawn = {} if judge is None else draw_chances(scope, chats=chats.ids, labels=labels_of(scope))
    criteria = tuple(
        CriterionData(
            spec=_spec(row, passes[row.pk]),
            human=human[row.pk],
            judge=None if judge is None else judge[row.pk],
            counts=counts[row.pk],
            raters=len({one.rater for one in given if one.criterion == row.pk}),
            rater_tables=tables.get(row.pk, {}),
            questions=questions[row.pk],
            inverse=_inverse(drawn.get(row.pk)),
            chance=drawn[row.pk].probability if row.pk in drawn else None,
            at_random=_at_random(drawn.get(row.pk), human[row.pk]),
        )
        for row in scope.criteria
    )
    return ReportData(chat_ids=chats.external_ids, criteria=criteria, against=scope.against)


def judge_answers(scope: Scope) -> dict[str, Codes]:
    """JudgeCode by chat in the scope's order, by criterion key; two queries."""
    codes = run_codes(scope.run, scope, covered_chats(scope))
    return {row.key: codes[row.pk] for row in scope.criteria}


def covered_chats(scope: Scope) -> Chats:
    """The scope's chats in order."""
    rows = list(scope.members.values_list("chat_id", "chat__external_id"))
    return Chats([external for _, external in rows], np.array([pk for pk, _ in rows], dtype=np.int64))


def _spec(row: Criterion, passes_when: bool) -> CriterionSpec:
    return CriterionSpec(row.key, row.dimension.key, row.dimension.name, row.tier, passes_when)


def _passes_when(criteria: Iterable[Criterion]) -> dict[int, bool]:
    """By criterion id; equal in all versions that carry labels, so the newest will do."""
    rows = CriterionVersion.objects.filter(criterion__in=list(criteria)).order_by("number")
    return dict(rows.values_list("criterion_id", "passes_when"))


def _placed(
    scope: Scope, chats: Chats, rows: NDArray[Any], values: NDArray[Any], *, rest: int
) -> dict[int, NDArray[Any]]:
    """One value a chat, by criterion id: those of rows that name `chat` and `criterion`, else `rest`."""
    ids = [row.pk for row in scope.criteria]
    found = np.full((len(ids), len(chats.ids), *values.shape[1:]), rest, dtype=values.dtype)
    found[places_in(ids, rows["criterion"]), chats.places(rows["chat"])] = values
    return dict(zip(ids, found, strict=True))


def _human(scope: Scope, chats: Chats) -> tuple[dict[int, Codes], dict[int, Any]]:
    """HumanCode and counts of labels by chat, by criterion id."""
    rows = columns_of(
        Consensus.objects.filter(chat__in=scope.chat_ids, criterion__in=scope.criteria),
        chat="chat_id",
        criterion="criterion_id",
        state=coded("state", HUMAN_STATES),
        true="n_true",
        false="n_false",
        na="n_na",
    )
    given = np.column_stack([rows[name].astype(np.int32) for name in ("true", "false", "na")])
    counts = _placed(scope, chats, rows, given, rest=0)
    if scope.rater:
        return _one_rater(scope, chats), counts
    return _placed(scope, chats, rows, rows["state"].astype(np.int8), rest=HumanCode.UNLABELLED), counts


def _one_rater(scope: Scope, chats: Chats) -> dict[int, Codes]:
    """One rater's answers in place of the consensus."""
    labels = labels_of(scope).filter(rater__name=scope.rater)
    rows = columns_of(labels, chat="chat_id", criterion="criterion_id", value=coded("value", VALUES))
    if not rows.size and not knows_rater(replace(scope, only="")):
        raise UnknownRater(f"no labels by the rater {scope.rater!r} on these chats")
    return _placed(scope, chats, rows, rows["value"].astype(np.int8), rest=HumanCode.UNLABELLED)


def run_codes(run: Run | None, scope: Scope, chats: Chats) -> dict[int, Codes]:
    """JudgeCode of a run by chat, by criterion id, on the scope's chats and criteria; one query."""
    return _judge_codes(scope, chats, verdict_rows(run, scope))


def _judge_codes(scope: Scope, chats: Chats, rows: NDArray[Any]) -> dict[int, Codes]:
    return _placed(scope, chats, rows, rows["code"].astype(np.int8), rest=JudgeCode.NONE)


def verdict_rows(run: Run | None, scope: Scope, **more: Any) -> NDArray[Any]:
    """`chat`, `criterion`, JudgeCode as `code`, and whatever more of a run's verdicts here; one query."""
    verdicts = Verdict.objects.filter(run=run, criterion__in=scope.criteria)
    if run != scope.run or not scope.is_whole_run:  # asked for a million verdicts, this takes its time
        verdicts = verdicts.filter(chat__in=scope.chat_ids)
    judge = coded("state", JUDGE_STATES, coded("value", JUDGE_VALUES))
    return columns_of(verdicts, chat="chat_id", criterion="criterion_id", code=judge, **more)


def labels_of(scope: Scope) -> QuerySet[Label]:
    """The labels that count on the scope's chats and criteria."""
    return Label.objects.counted().filter(chat__in=scope.chat_ids, criterion__in=scope.criteria)


def knows_rater(scope: Scope) -> bool:
    """Whether the one rater who is the ground truth gave a label here; True where it is not one rater."""
    return not scope.rater or labels_of(scope).filter(rater__name=scope.rater).exists()


class Given(NamedTuple):
    """That somebody answered some version of a criterion's text; ids."""

    criterion: int
    rater: int
    version: int


def _given(scope: Scope) -> list[Given]:
    """Who answered which texts on these chats; one query."""
    rows = labels_of(scope).values_list("criterion_id", "rater_id", "version_id")
    return [Given(*row) for row in rows.order_by().distinct()]


def rater_ids(scope: Scope) -> list[int]:
    """Those who gave a label here, each looked up until the first is found; one query."""
    theirs = Exists(labels_of(scope).filter(rater=OuterRef("pk")))
    return list(Rater.objects.filter(theirs).order_by("pk").values_list("pk", flat=True))


def _questions(scope: Scope, given: Iterable[Given]) -> dict[int, Questions]:
    """Which questions labels and judge answer, by criterion id; an imported judge's is not known."""
    prompts = JudgePrompt.objects.filter(judge=scope.run.judge) if scope.run else JudgePrompt.objects.none()
    asked = {row.criterion_id: row.criterion_version for row in prompts.select_related("criterion_version")}
    only = set(Rater.objects.filter(name=scope.rater).values_list("pk", flat=True)) if scope.rater else None
    counted = {one.version for one in given if only is None or one.rater in only}
    # Counted labels answer one question; its newest version stands for it.
    versions = CriterionVersion.objects.filter(pk__in=counted).order_by("number")
    answered = {row.criterion_id: (row.content_hash, row.number) for row in versions}
    return {row.pk: _question(asked.get(row.pk), answered.get(row.pk)) for row in scope.criteria}


def _question(asked: CriterionVersion | None, answered: tuple[str, int] | None) -> Questions:
    same = asked.content_hash == answered[0] if asked and answered else None
    return Questions(asked.number if asked else None, answered[1] if answered else None, same)


def _at_random(chances: Chances | None, human: Codes) -> bool:
    """Whether the labelled chats are a random sample of all."""
    if chances is None or not chances.whole:
        return False
    return not (~chances.drawn & (human != HumanCode.UNLABELLED)).any()


def _inverse(chances: Chances | None) -> NDArray[np.float64] | None:
    """1 / probability of each chat that draws with unequal chances had labelled, else 0."""
    if chances is None or not chances.unequal:
        return None
    chosen = chances.drawn & (chances.probability > 0)
    return np.divide(1, chances.probability, out=np.zeros(chosen.size), where=chosen)


def _rater_tables(scope: Scope) -> dict[int, dict[str, Confusion]]:
    """Each rater's 2×2 table against the judge, by criterion id and rater name; counted by the database."""
    read = Verdict.objects.filter(run=scope.run, state=Verdict.State.READ)
    said = read.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion")).values("value")
    labels = labels_of(scope).filter(value__isnull=False).annotate(said=Subquery(said))
    pairs = labels.values_list("criterion_id", "rater__name", "value", "said").annotate(n=Count("pk"))
    cells: dict[tuple[int, str], dict[tuple[bool, bool], int]] = {}
    for criterion, name, value, judged, n in pairs.order_by():
        if judged is not None:
            cells.setdefault((criterion, name), {})[value, judged] = n
    tables: dict[int, dict[str, Confusion]] = {}
    for (criterion, name), found in sorted(cells.items()):
        tables.setdefault(criterion, {})[name] = _table(found)
    return tables


def _table(pairs: Mapping[tuple[bool, bool], int]) -> Confusion:
    """From the counts of (people, judge)."""
    counted = {"tp": (True, True), "fn": (True, False), "fp": (False, True), "tn": (False, False)}
    return Confusion(**{cell: pairs.get(pair, 0) for cell, pair in counted.items()})
