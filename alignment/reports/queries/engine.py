"""The report's engine section: steps of the engine, and how often they were right."""

from typing import Any

import numpy as np
from django.db.models import Case, TextField, Value, When
from django.db.models.functions import Cast
from django.db.models.lookups import Contains
from numpy.typing import NDArray

from alignment.comparison.core.codes import HumanCode, ReportData
from alignment.comparison.queries.answers import coded, covered_chats, places_in, verdict_rows
from alignment.comparison.queries.scope import Scope
from alignment.reports.core import engine_side
from alignment.statistics.intervals import proportion
from evaluation.engines.core.injection_detection import SUSPECT
from evaluation.models.judges import Judge
from evaluation.models.runs import Verdict
from evaluation.runs.queries.engine_stats import run_engine_stats

ANSWERS = (True, False, None)
NO_DRAFT = len(ANSWERS)


def engine_rows(scope: Scope) -> NDArray[Any] | None:
    """Return the run's verdicts (`verdict_rows`) with the columns of `engine_section`; None without a run.

    Columns: `first` is the draft's position in ANSWERS, NO_DRAFT without one; `side` the position in
    `_sides`; `suspect` is 1 on suspect chats.
    """
    if scope.run is None:
        return None
    if not _has_engine(scope) or scope.each_rater:
        return verdict_rows(scope.run, scope)
    first = coded("first_value", {value: place for place, value in enumerate(ANSWERS)})
    # As text: SQLite cannot search in JSON lists.
    suspect = Contains(Cast("flags", TextField()), SUSPECT)
    return verdict_rows(
        scope.run,
        scope,
        first=Case(When(first_state=Verdict.State.READ, then=first), default=Value(NO_DRAFT)),
        side=coded("sided_with", {name: place for place, name in enumerate(_sides())}),
        suspect=Case(When(suspect, then=Value(1)), default=Value(0)),
    )


def engine_section(scope: Scope, data: ReportData, verdicts: NDArray[Any] | None) -> dict[str, Any] | None:
    """Return the report's `engine`: counts of the engine's steps, compared with the human answers in `data`.

    None without a run, and for imported verdicts. `against_people` is None against each rater, because a chat
    then has no single human answer. `verdicts` is the result of `engine_rows`.
    """
    if scope.run is None or verdicts is None or not _has_engine(scope):
        return None
    stats = run_engine_stats(scope.run, chats=None if scope.is_whole_run else scope.chat_ids).as_json()
    right = (
        None
        if scope.each_rater
        else engine_side.engine_against_humans(_verdict_counts(scope, data, verdicts))
    )
    return {**_with_shares(stats), "against_people": right}


def _sides() -> tuple[str, ...]:
    """Return the values of `sided_with`, '' without a debate."""
    return ("", *engine_side.sides())


def _has_engine(scope: Scope) -> bool:
    return scope.run is not None and scope.run.judge.kind == Judge.Kind.LACE


def _with_shares(value: Any) -> Any:
    """Add the share and its interval to every object of `hits` and `n`."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"hits", "n"}:
        return value | proportion(value["hits"], value["n"], reason="none").as_json()
    return {name: _with_shares(part) for name, part in value.items()}


def _verdict_counts(scope: Scope, data: ReportData, verdicts: NDArray[Any]) -> list[engine_side.VerdictCount]:
    """Count the verdicts on chats with a human True or False, by kind."""
    if not data.criteria:
        return []
    rows = verdicts[verdicts["code"] < len(ANSWERS)]  # codes of True, False, not applicable
    criterion = places_in([row.pk for row in scope.criteria], rows["criterion"])
    human = np.stack([one.human for one in data.criteria])[
        criterion, covered_chats(scope).places(rows["chat"])
    ]
    passes = np.array([one.spec.passes_when for one in data.criteria], dtype=np.int64)[criterion]
    kinds = (human, *(rows[name] for name in ("code", "first", "side", "suspect")), passes)
    answered = (human == HumanCode.TRUE) | (human == HumanCode.FALSE)
    return _count_equal(tuple(kind[answered] for kind in kinds))


def _count_equal(kinds: tuple[NDArray[Any], ...]) -> list[engine_side.VerdictCount]:
    """Count equal rows."""
    sides = _sides()
    sizes = (2, len(ANSWERS), NO_DRAFT + 1, len(sides), 2, 2)
    codes, counts = np.unique(np.ravel_multi_index(kinds, sizes), return_counts=True)
    each = np.column_stack([*np.unravel_index(codes, sizes), counts]).tolist()
    return [
        engine_side.VerdictCount(
            human=human == HumanCode.TRUE,
            value=ANSWERS[value],
            first=None if first == NO_DRAFT else ANSWERS[first],
            reflected=first != NO_DRAFT,
            side=sides[side],
            passes_when=bool(passes),
            suspect=bool(suspect),
            n=n,
        )
        for human, value, first, side, suspect, passes, n in each
    ]
