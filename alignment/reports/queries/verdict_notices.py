"""The notice at the top of a report about chats without a verdict."""

from collections.abc import Mapping, Sequence
from typing import Any

from alignment.comparison.queries.scope import Scope
from alignment.reports.core.missing_verdicts import missing_verdicts, not_judged_yet
from evaluation.models.runs import Run


def verdict_notices(criteria: Sequence[Mapping[str, Any]], scope: Scope, *, chats: int) -> list[str]:
    """Return the notice on chats that an imported judge has not, or a run has not yet, judged."""
    if scope.run is None:
        return []
    names = {row.key: row.name for row in scope.criteria}
    imported = scope.run.purpose == Run.Purpose.IMPORT
    return (missing_verdicts if imported else not_judged_yet)(criteria, chats=chats, names=names)
