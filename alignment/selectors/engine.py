"""What a run's engine did, and whether it was right, for the report."""

from typing import Any

import numpy as np
from django.db.models import Case, TextField, Value, When
from django.db.models.functions import Cast
from numpy.typing import NDArray

from alignment.core.intervals import proportion
from alignment.core.report import HumanCode, ReportData, engine_side
from alignment.selectors.answers import coded, columns_of, covered_chats, places_in
from alignment.selectors.scope import Scope
from evaluation.core.hostile import SUSPECT
from evaluation.models.judges import Judge
from evaluation.models.runs import Verdict
from evaluation.selectors.engine_stats import run_engine_stats

ANSWERS = (True, False, None)
NO_DRAFT = len(ANSWERS)
SIDES = ("", *engine_side.SIDES)


def engine_section(scope: Scope, data: ReportData) -> dict[str, Any] | None:
    """The report's `engine` (docs/reports.md): counts, and what they are worth against people, as in `data`.

    None without a run, and for a judge whose verdicts were imported. Against each rater there is no one
    answer of people to compare with: `against_people` is None.
    """
    if scope.run is None or scope.run.judge.kind != Judge.Kind.LACE:
        return None
    stats = run_engine_stats(scope.run, chats=scope.chat_ids).as_json()
    right = None if scope.each_rater else engine_side.engine_against_people(_counted(scope, data))
    return {**_with_shares(stats), "against_people": right}


def _with_shares(value: Any) -> Any:
    """The same with the share and its interval beside every count of hits among n."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"hits", "n"}:
        return value | proportion(value["hits"], value["n"], reason="none").as_json()
    return {name: _with_shares(part) for name, part in value.items()}


def _counted(scope: Scope, data: ReportData) -> list[engine_side.Counted]:
    """Verdicts that people answered True or False as well."""
    if not data.criteria:
        return []
    read = Verdict.objects.filter(
        run=scope.run, chat__in=scope.chat_ids, criterion__in=scope.criteria, state=Verdict.State.READ
    )
    answers = {value: place for place, value in enumerate(ANSWERS)}
    first = coded("first_value", answers)
    rows = columns_of(
        read.annotate(flags_text=Cast("flags", TextField())),
        chat="chat_id",
        criterion="criterion_id",
        value=coded("value", answers),
        first=Case(When(first_state=Verdict.State.READ, then=first), default=Value(NO_DRAFT)),
        side=coded("sided_with", {name: place for place, name in enumerate(SIDES)}),
        suspect=Case(When(flags_text__contains=SUSPECT, then=Value(1)), default=Value(0)),
    )
    criterion = places_in([row.pk for row in scope.criteria], rows["criterion"])
    human = np.stack([one.human for one in data.criteria])[
        criterion, covered_chats(scope).places(rows["chat"])
    ]
    passes = np.array([one.spec.passes_when for one in data.criteria], dtype=np.int64)[criterion]
    kinds = (human, *(rows[name] for name in ("value", "first", "side", "suspect")), passes)
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
