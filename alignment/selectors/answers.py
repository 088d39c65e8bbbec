"""The answers of people and judge as arrays, one position a chat."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db.models import Count, Exists, Max, OuterRef, Subquery

from alignment.core.agreement import Confusion
from alignment.core.report import CriterionData, CriterionSpec, HumanCode, JudgeCode, ReportData
from alignment.core.report.data import Codes
from alignment.core.report.questions import Questions
from alignment.selectors.scope import Scope
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, Verdict
from labeling.models.labels import Consensus, Label
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion

HUMAN_CODES = {
    Consensus.State.TRUE: HumanCode.TRUE,
    Consensus.State.FALSE: HumanCode.FALSE,
    Consensus.State.NA: HumanCode.NA,
    Consensus.State.UNRESOLVED: HumanCode.UNRESOLVED,
}
VALUE_CODES = {True: HumanCode.TRUE, False: HumanCode.FALSE, None: HumanCode.NA}
JUDGE_VALUES = {True: JudgeCode.TRUE, False: JudgeCode.FALSE, None: JudgeCode.NA}
JUDGE_STATES = {
    Verdict.State.UNPARSED: JudgeCode.UNPARSED,
    Verdict.State.REFUSED: JudgeCode.REFUSED,
    Verdict.State.CUT_OFF: JudgeCode.CUT_OFF,
    Verdict.State.TOO_LONG: JudgeCode.TOO_LONG,
    Verdict.State.FAILED: JudgeCode.FAILED,
}


class UnknownRater(ValueError):
    """The report is asked against a rater who gave no label here."""


@dataclass(frozen=True)
class Chats:
    """The covered chats: external ids in order, and the position of each primary key."""

    external_ids: list[str]
    position: Mapping[int, int]


def report_data(scope: Scope) -> ReportData:
    """Load everything a report is computed from; the number of queries does not depend on chats or labels."""
    chats = covered_chats(scope)
    human, counts = _human(scope, chats)
    judge = run_codes(scope.run, scope, chats) if scope.run is not None else None
    passes, raters = _passes_when(scope.criteria), _rater_counts(scope)
    tables = _rater_tables(scope) if scope.each_rater and judge is not None else {}
    questions = _questions(scope)
    criteria = tuple(
        CriterionData(
            spec=_spec(row, passes[row.pk]),
            human=human[row.pk],
            judge=None if judge is None else judge[row.pk],
            counts=counts[row.pk],
            raters=raters.get(row.pk, 0),
            rater_tables=tables.get(row.pk, {}),
            questions=questions[row.pk],
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
    return Chats([external for _, external in rows], {pk: place for place, (pk, _) in enumerate(rows)})


def _spec(row: Criterion, passes_when: bool) -> CriterionSpec:
    return CriterionSpec(row.key, row.dimension.key, row.dimension.name, row.tier, passes_when)


def _passes_when(criteria: Iterable[Criterion]) -> dict[int, bool]:
    """By criterion id; equal in all versions that carry labels, so the newest will do."""
    rows = CriterionVersion.objects.filter(criterion__in=list(criteria)).order_by("number")
    return dict(rows.values_list("criterion_id", "passes_when"))


def _filled(scope: Scope, chats: Chats, code: HumanCode | JudgeCode) -> dict[int, Codes]:
    """The same code for every chat, by criterion id."""
    return {row.pk: np.full(len(chats.external_ids), code, dtype=np.int8) for row in scope.criteria}


def _human(scope: Scope, chats: Chats) -> tuple[dict[int, Codes], dict[int, Any]]:
    codes = _filled(scope, chats, HumanCode.UNLABELLED)
    counts = {row.pk: np.zeros((len(chats.external_ids), 3), dtype=np.int32) for row in scope.criteria}
    rows = Consensus.objects.filter(chat__in=scope.chat_ids, criterion__in=scope.criteria)
    for chat, criterion, state, *n in rows.values_list(
        "chat_id", "criterion_id", "state", "n_true", "n_false", "n_na"
    ).iterator(chunk_size=5000):
        place = chats.position[chat]
        codes[criterion][place] = HUMAN_CODES[Consensus.State(state)]
        counts[criterion][place] = n
    if scope.rater:
        codes = _one_rater(scope, chats)
    return codes, counts


def _one_rater(scope: Scope, chats: Chats) -> dict[int, Codes]:
    """One rater's answers in place of the consensus."""
    codes = _filled(scope, chats, HumanCode.UNLABELLED)
    rows = list(
        _labels(scope).filter(rater__name=scope.rater).values_list("chat_id", "criterion_id", "value")
    )
    if not rows and not _labels(replace(scope, only="")).filter(rater__name=scope.rater).exists():
        raise UnknownRater(f"no labels by the rater {scope.rater!r} on these chats")
    for chat, criterion, value in rows:
        codes[criterion][chats.position[chat]] = VALUE_CODES[value]
    return codes


def run_codes(run: Run | None, scope: Scope, chats: Chats) -> dict[int, Codes]:
    """JudgeCode of a run by chat, by criterion id, on the scope's chats and criteria; one query."""
    codes = _filled(scope, chats, JudgeCode.NONE)
    rows = Verdict.objects.filter(run=run, chat__in=scope.chat_ids, criterion__in=scope.criteria)
    for chat, criterion, state, value in rows.values_list(
        "chat_id", "criterion_id", "state", "value"
    ).iterator(chunk_size=5000):
        code = JUDGE_VALUES[value] if state == Verdict.State.READ else JUDGE_STATES[Verdict.State(state)]
        codes[criterion][chats.position[chat]] = code
    return codes


def _labels(scope: Scope) -> Any:
    return Label.objects.counted().filter(chat__in=scope.chat_ids, criterion__in=scope.criteria)


def raters_in(scope: Scope, *, limit: int) -> list[Rater]:
    """The first `limit` of those who gave a label here, by name."""
    return list(Rater.objects.filter(pk__in=_labels(scope).values("rater_id")).order_by("name")[:limit])


def rater_kinds(scope: Scope) -> set[str]:
    """The kinds of those who gave a label here and are not simply people."""
    others = Rater.objects.exclude(kind=Rater.Kind.PERSON).filter(
        Exists(_labels(scope).filter(rater=OuterRef("pk")))
    )
    return set(others.values_list("kind", flat=True))


def _rater_counts(scope: Scope) -> dict[int, int]:
    """Distinct raters by criterion id."""
    rows = _labels(scope).values("criterion").annotate(raters=Count("rater", distinct=True)).order_by()
    return {row["criterion"]: row["raters"] for row in rows}


def _questions(scope: Scope) -> dict[int, Questions]:
    """Which questions labels and judge answer, by criterion id; an imported judge's is not known."""
    prompts = JudgePrompt.objects.filter(judge=scope.run.judge) if scope.run else JudgePrompt.objects.none()
    asked = {row.criterion_id: row.criterion_version for row in prompts.select_related("criterion_version")}
    labels = _labels(scope).filter(rater__name=scope.rater) if scope.rater else _labels(scope)
    # Counted labels answer one question; its newest version stands for it.
    counted = labels.values_list("criterion_id", "version__content_hash").annotate(Max("version__number"))
    answered = {criterion: (question, number) for criterion, question, number in counted.order_by()}
    return {row.pk: _question(asked.get(row.pk), answered.get(row.pk)) for row in scope.criteria}


def _question(asked: CriterionVersion | None, answered: tuple[str, int] | None) -> Questions:
    same = asked.content_hash == answered[0] if asked and answered else None
    return Questions(asked.number if asked else None, answered[1] if answered else None, same)


def _rater_tables(scope: Scope) -> dict[int, dict[str, Confusion]]:
    """Each rater's 2×2 table against the judge, by criterion id and rater name; counted by the database."""
    read = Verdict.objects.filter(run=scope.run, state=Verdict.State.READ)
    said = read.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion")).values("value")
    labels = _labels(scope).filter(value__isnull=False).annotate(said=Subquery(said))
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
