"""Human answers and verdicts as arrays, one position per chat."""

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
    Clusters,
    Codes,
    CriterionData,
    CriterionSpec,
    HumanCode,
    JudgeCode,
    ReportData,
    cluster_numbers,
)
from alignment.comparison.core.question_versions import Questions
from alignment.comparison.queries.inclusion_probabilities import Inclusion, inclusion_probabilities
from alignment.comparison.queries.scope import Scope
from alignment.statistics.agreement import Confusion
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, Verdict
from labeling.consensus.core.dropped import DroppedLabels
from labeling.consensus.queries import dropped_labels
from labeling.models.labels import Consensus, Label
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionLineage, CriterionVersion

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
    """SQL expression of the code of each value of a column; `default` for other values."""
    cases = [When(**lookup(column, value), then=Value(int(code))) for value, code in codes.items()]
    rest = Value(default) if isinstance(default, int) else default
    return Case(*cases, default=rest, output_field=IntegerField())


def lookup(column: str, value: Any) -> dict[str, Any]:
    """Filter arguments for one value of a column, which may be None."""
    return {f"{column}__isnull": True} if value is None else {column: value}


class UnknownRater(ValueError):
    """The rater of the report gave no label on its chats."""


class ReportNotComputed(Exception):
    """The report compares too many answers to be computed while a reader waits, and is not stored."""


@dataclass(frozen=True)
class Chats:
    """Chats of a scope, in order: external ids, primary keys (chats,), and the cluster of each."""

    external_ids: list[str]
    ids: NDArray[np.int64]
    clusters: Clusters = None

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Positions of the chats with these primary keys, which all have to be in the scope."""
        return places_in(self.ids, ids)


def places_in(ids: Sequence[int] | NDArray[np.int64], some: NDArray[np.int64]) -> NDArray[np.intp]:
    """Positions of some of the ids among all ids."""
    known = np.asarray(ids, dtype=np.int64)
    order = np.argsort(known)
    return order[np.searchsorted(known, some, sorter=order)]


def columns_of(rows: QuerySet[Any], **columns: Any) -> NDArray[Any]:
    """Integer columns of the rows as a structured array, without a Python object per row."""
    names = [(name, np.int64) for name in columns]
    try:
        query = rows.order_by().values_list(*columns.values()).query.sql_with_params()
    except EmptyResultSet:
        return np.empty(0, dtype=names)
    with connection.chunked_cursor() as cursor:
        cursor.execute(*query)
        fetched = chain.from_iterable(iter(partial(cursor.fetchmany, AT_ONCE), []))
        return np.fromiter(fetched, dtype=names)


def report_data(scope: Scope, verdicts: NDArray[Any] | None = None) -> ReportData:
    """Load the input of a report; the number of queries does not depend on chats or labels.

    `verdicts` : rows of `verdict_rows` for the scope's run, if the caller has them.
    Raises UnknownRater if the scope's rater gave no label.
    """
    chats = covered_chats(scope)
    human, counts = _human(scope, chats)
    judge = None
    if scope.run is not None:
        read = verdict_rows(scope.run, scope) if verdicts is None else verdicts
        judge = _judge_codes(scope, chats, read)
    passes, answered = _passes_when(scope.criteria), _answered_versions(scope)
    tables = _rater_tables(scope) if scope.each_rater and judge is not None else {}
    carried = _carried(scope, answered)
    dropped = dropped_of(scope)
    questions = _questions(scope, answered)
    samples = (
        {} if judge is None else inclusion_probabilities(scope, chats=chats.ids, labels=labels_of(scope))
    )
    criteria = tuple(
        CriterionData(
            spec=_spec(row, passes[row.pk]),
            human=human[row.pk],
            judge=None if judge is None else judge[row.pk],
            counts=counts[row.pk],
            raters=len({one.rater for one in answered if one.criterion == row.pk}),
            rater_tables=tables.get(row.pk, {}),
            questions=questions[row.pk],
            inverse=_inverse(samples.get(row.pk)),
            chance=samples[row.pk].probability if row.pk in samples else None,
            at_random=_at_random(samples.get(row.pk), human[row.pk]),
            carried=carried.get(row.pk, {}),
            dropped=dropped.get(row.key),
            complete=scope.run is None or scope.run.finished_at is not None,
        )
        for row in scope.criteria
    )
    return ReportData(
        chat_ids=chats.external_ids, criteria=criteria, against=scope.against, clusters=chats.clusters
    )


def judge_answers(scope: Scope) -> dict[str, Codes]:
    """JudgeCode by chat, shape (chats,), by criterion key; two queries."""
    codes = run_codes(scope.run, scope, covered_chats(scope))
    return {row.key: codes[row.pk] for row in scope.criteria}


def covered_chats(scope: Scope) -> Chats:
    """Chats of the scope, in order."""
    rows = list(scope.members.values_list("chat_id", "chat__external_id", "chat__cluster"))
    ids = np.array([pk for pk, _, _ in rows], dtype=np.int64)
    return Chats([external for _, external, _ in rows], ids, cluster_numbers([one for _, _, one in rows]))


def criterion_specs(scope: Scope) -> list[CriterionSpec]:
    """The scope's criteria as the pure code needs them; one query."""
    passes = _passes_when(scope.criteria)
    return [_spec(row, passes[row.pk]) for row in scope.criteria]


def _spec(row: Criterion, passes_when: bool) -> CriterionSpec:
    return CriterionSpec(row.key, row.dimension.key, row.dimension.name, row.tier, passes_when, row.critical)


def _passes_when(criteria: Iterable[Criterion]) -> dict[int, bool]:
    """Passing answer by criterion id, from the newest version; versions with labels do not differ."""
    rows = CriterionVersion.objects.filter(criterion__in=list(criteria)).order_by("number")
    return dict(rows.values_list("criterion_id", "passes_when"))


def _placed(
    scope: Scope, chats: Chats, rows: NDArray[Any], values: NDArray[Any], *, rest: int
) -> dict[int, NDArray[Any]]:
    """Arrays by criterion id: the value of each chat's row, else `rest`. Rows have `chat`, `criterion`."""
    ids = [row.pk for row in scope.criteria]
    filled = np.full((len(ids), len(chats.ids), *values.shape[1:]), rest, dtype=values.dtype)
    filled[places_in(ids, rows["criterion"]), chats.places(rows["chat"])] = values
    return dict(zip(ids, filled, strict=True))


def _human(scope: Scope, chats: Chats) -> tuple[dict[int, Codes], dict[int, Any]]:
    """HumanCode (chats,) and label counts (chats, 3), by criterion id."""
    rows = columns_of(
        Consensus.objects.filter(chat__in=scope.chat_ids, criterion__in=scope.criteria),
        chat="chat_id",
        criterion="criterion_id",
        state=coded("state", HUMAN_STATES),
        true="n_true",
        false="n_false",
        na="n_na",
    )
    numbers = np.column_stack([rows[name].astype(np.int32) for name in ("true", "false", "na")])
    counts = _placed(scope, chats, rows, numbers, rest=0)
    if scope.rater:
        return _one_rater(scope, chats), counts
    return _placed(scope, chats, rows, rows["state"].astype(np.int8), rest=HumanCode.UNLABELLED), counts


def human_codes_of(scope: Scope, chats: Chats) -> dict[int, Codes]:
    """HumanCode by chat, shape (chats,), by criterion id; one query."""
    return _human(scope, chats)[0]


def _one_rater(scope: Scope, chats: Chats) -> dict[int, Codes]:
    """Labels of one rater instead of the consensus."""
    labels = labels_of(scope).filter(rater__name=scope.rater)
    rows = columns_of(labels, chat="chat_id", criterion="criterion_id", value=coded("value", VALUES))
    if not rows.size and not knows_rater(replace(scope, only="")):
        raise UnknownRater(f"rater {scope.rater!r} has no labels on these chats")
    return _placed(scope, chats, rows, rows["value"].astype(np.int8), rest=HumanCode.UNLABELLED)


def run_codes(run: Run | None, scope: Scope, chats: Chats) -> dict[int, Codes]:
    """JudgeCode by chat, shape (chats,), by criterion id, for a run on the scope's chats; one query."""
    return _judge_codes(scope, chats, verdict_rows(run, scope))


def _judge_codes(scope: Scope, chats: Chats, rows: NDArray[Any]) -> dict[int, Codes]:
    return _placed(scope, chats, rows, rows["code"].astype(np.int8), rest=JudgeCode.NONE)


def verdict_rows(run: Run | None, scope: Scope, **more: Any) -> NDArray[Any]:
    """Columns `chat`, `criterion`, `code` (JudgeCode) and `more` of a run's verdicts; one query."""
    verdicts = Verdict.objects.filter(run=run, criterion__in=scope.criteria)
    if run != scope.run or not scope.is_whole_run:  # slow for a million verdicts
        verdicts = verdicts.filter(chat__in=scope.chat_ids)
    judge = coded("state", JUDGE_STATES, coded("value", JUDGE_VALUES))
    return columns_of(verdicts, chat="chat_id", criterion="criterion_id", code=judge, **more)


def labels_of(scope: Scope) -> QuerySet[Label]:
    """Counted labels on the scope's chats and criteria."""
    return Label.objects.counted().filter(chat__in=scope.chat_ids, criterion__in=scope.criteria)


def dropped_of(scope: Scope) -> dict[str, DroppedLabels]:
    """Labels on the scope's chats that answer an older text and no longer count, by criterion key."""
    labels = Label.objects.given().filter(chat__in=scope.chat_ids)
    return {row.key: row for row in dropped_labels(labels=labels, criteria=scope.criteria)}


def knows_rater(scope: Scope) -> bool:
    """Whether the scope's rater gave a label on its chats; True for other ground truths."""
    return not scope.rater or labels_of(scope).filter(rater__name=scope.rater).exists()


class AnsweredVersion(NamedTuple):
    """A rater has labels on this version of a criterion's text, carried over from `origin` or not; ids."""

    criterion: int
    rater: int
    version: int
    origin: int | None


def _answered_versions(scope: Scope) -> list[AnsweredVersion]:
    """Versions that the raters' labels on these chats answer; one query."""
    rows = labels_of(scope).values_list("criterion_id", "rater_id", "version_id", "carried_from_id")
    return [AnsweredVersion(*row) for row in rows.order_by().distinct()]


def _carried(scope: Scope, answered: Iterable[AnsweredVersion]) -> dict[int, dict[str, int]]:
    """Labels that carried over, by criterion id and key of the retired criterion, in the rubric's order.

    After a merge, 0 for an old criterion whose labels only decided which chats carried over.
    """
    new = {one.criterion for one in answered if one.origin is not None}
    if not new:
        return {}
    links = CriterionLineage.objects.filter(new__in=new, carries_labels=True)
    counts = dict.fromkeys(links.values_list("new", "old"), 0)
    labels = labels_of(scope).filter(carried_from__isnull=False).order_by()
    for criterion, old, n in labels.values_list("criterion_id", "carried_from_id").annotate(Count("pk")):
        counts[criterion, old] = n
    origins = Criterion.objects.filter(pk__in={old for _, old in counts}).order_by("position", "pk")
    carried: dict[int, dict[str, int]] = {}
    for pk, key in origins.values_list("pk", "key"):
        for (criterion, old), n in counts.items():
            if old == pk:
                carried.setdefault(criterion, {})[key] = n
    return carried


def rater_ids(scope: Scope) -> list[int]:
    """Ids of raters with a label on the scope's chats; one query."""
    theirs = Exists(labels_of(scope).filter(rater=OuterRef("pk")))
    return list(Rater.objects.filter(theirs).order_by("pk").values_list("pk", flat=True))


def _questions(scope: Scope, answered: Iterable[AnsweredVersion]) -> dict[int, Questions]:
    """Versions that labels and verdicts answer, by criterion id; unknown for an imported judge."""
    prompts = JudgePrompt.objects.filter(judge=scope.run.judge) if scope.run else JudgePrompt.objects.none()
    judged = {row.criterion_id: row.criterion_version for row in prompts.select_related("criterion_version")}
    only = set(Rater.objects.filter(name=scope.rater).values_list("pk", flat=True)) if scope.rater else None
    counted = {one.version for one in answered if only is None or one.rater in only}
    # Counted labels answer one question: take its newest version.
    versions = CriterionVersion.objects.filter(pk__in=counted).order_by("number")
    labelled = {row.criterion_id: row for row in versions}
    return {row.pk: _question(judged.get(row.pk), labelled.get(row.pk)) for row in scope.criteria}


def _question(judged: CriterionVersion | None, labelled: CriterionVersion | None) -> Questions:
    # The same words, or others that mean the same.
    same = judged.asks_as(labelled) if judged and labelled else None
    return Questions(judged.number if judged else None, labelled.number if labelled else None, same)


def _at_random(inclusion: Inclusion | None, human: Codes) -> bool:
    """Whether the labelled chats are a random sample of all."""
    if inclusion is None or not inclusion.whole:
        return False
    return not (~inclusion.sampled & (human != HumanCode.UNLABELLED)).any()


def _inverse(inclusion: Inclusion | None) -> NDArray[np.float64] | None:
    """1 / probability of each chat labelled for a sample with unequal probabilities, else 0."""
    if inclusion is None or not inclusion.unequal:
        return None
    weighted = inclusion.sampled & (inclusion.probability > 0)
    return np.divide(1, inclusion.probability, out=np.zeros(weighted.size), where=weighted)


def _rater_tables(scope: Scope) -> dict[int, dict[str, Confusion]]:
    """2×2 table of each rater × verdicts, by criterion id and rater name; counted by the database."""
    read = Verdict.objects.filter(run=scope.run, state=Verdict.State.READ)
    verdict = read.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion")).values("value")
    labels = labels_of(scope).filter(value__isnull=False).annotate(verdict=Subquery(verdict))
    pairs = labels.values_list("criterion_id", "rater__name", "value", "verdict").annotate(n=Count("pk"))
    cells: dict[tuple[int, str], dict[tuple[bool, bool], int]] = {}
    for criterion, name, value, judged, n in pairs.order_by():
        if judged is not None:
            cells.setdefault((criterion, name), {})[value, judged] = n
    tables: dict[int, dict[str, Confusion]] = {}
    for (criterion, name), counts in sorted(cells.items()):
        tables.setdefault(criterion, {})[name] = _table(counts)
    return tables


def _table(pairs: Mapping[tuple[bool, bool], int]) -> Confusion:
    """The table of counts by (label, verdict)."""
    cells = {"tp": (True, True), "fn": (True, False), "fp": (False, True), "tn": (False, False)}
    return Confusion(**{cell: pairs.get(pair, 0) for cell, pair in cells.items()})
