"""What a run's engine did, and whether it was right, for the report."""

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
SIDES = ("", *engine_side.SIDES)


def engine_rows(scope: Scope) -> NDArray[Any] | None:
    """The run's verdicts (`verdict_rows`) with what `engine_section` has to know of them; None without a run.

    Columns: `first` is the draft's place among ANSWERS, NO_DRAFT without one; `side` the place among SIDES;
    `suspect` 1 where the chat may be hostile.
    """
    if scope.run is None:
        return None
    if not _has_engine(scope) or scope.each_rater:
        return verdict_rows(scope.run, scope)
    first = coded("first_value", {value: place for place, value in enumerate(ANSWERS)})
    # As text: SQLite cannot search in JSON lists.
    hostile = Contains(Cast("flags", TextField()), SUSPECT)
    return verdict_rows(
        scope.run,
        scope,
        first=Case(When(first_state=Verdict.State.READ, then=first), default=Value(NO_DRAFT)),
        side=coded("sided_with", {name: place for place, name in enumerate(SIDES)}),
        suspect=Case(When(hostile, then=Value(1)), default=Value(0)),
    )


def engine_section(scope: Scope, data: ReportData, verdicts: NDArray[Any] | None) -> dict[str, Any] | None:
    """The report's `engine` (docs/reports.md): counts, and what they are worth against people, as in `data`.

    None without a run, and for a judge whose verdicts were imported. Against each rater there is no one
    answer of people to compare with: `against_people` is None. `verdicts` as `engine_rows` gives them.
    """
    if scope.run is None or verdicts is None or not _has_engine(scope):
        return None
    stats = run_engine_stats(scope.run, chats=None if scope.is_whole_run else scope.chat_ids).as_json()
    right = None if scope.each_rater else engine_side.engine_against_people(_counted(scope, data, verdicts))
    return {**_with_shares(stats), "against_people": right}


def _has_engine(scope: Scope) -> bool:
    return scope.run is not None and scope.run.judge.kind == Judge.Kind.LACE


def _with_shares(value: Any) -> Any:
    """The same with the share and its interval beside every count of hits among n."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"hits", "n"}:
        return value | proportion(value["hits"], value["n"], reason="none").as_json()
    return {name: _with_shares(part) for name, part in value.items()}


def _counted(scope: Scope, data: ReportData, verdicts: NDArray[Any]) -> list[engine_side.Counted]:
    """Verdicts that people answered True or False as well."""
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
    return _alike(tuple(kind[answered] for kind in kinds))


def _alike(kinds: tuple[NDArray[Any], ...]) -> list[engine_side.Counted]:
    """Counts of verdicts of each kind."""
    sizes = (2, len(ANSWERS), NO_DRAFT + 1, len(SIDES), 2, 2)
    codes, counts = np.unique(np.ravel_multi_index(kinds, sizes), return_counts=True)
    each = np.column_stack([*np.unravel_index(codes, sizes), counts]).tolist()
    return [
        engine_side.Counted(
            human=human == HumanCode.TRUE,
            value=ANSWERS[value],
            first=None if first == NO_DRAFT else ANSWERS[first],
            reflected=first != NO_DRAFT,
            side=SIDES[side],
            passes_when=bool(passes),
            suspect=bool(suspect),
            n=n,
        )
        for human, value, first, side, suspect, passes, n in each
    ]
