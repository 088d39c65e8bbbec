"""The page of one prompt version: what it says, what it was measured to be, what changed against another."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AnonymousUser

from alignment.comparison.queries.disclosure import tell
from alignment.models.regressions import RegressionTest
from alignment.prompts.queries.sections import examples_for, sections_of, version_diff
from alignment.prompts.queries.versions import VersionRow, champion_of, version_rows, with_figures
from evaluation.runs.queries.runs import run_notices
from labeling.models.people import User
from labeling.models.rubric import Criterion


def version_page(
    *, criterion: Criterion, number: int, user: User | AnonymousUser, against: str = ""
) -> dict[str, Any] | None:
    """The template context; None where there is no such version. An unknown `against` is none."""
    rows = version_rows(criteria=[criterion])[criterion.pk]
    found = row_of(rows, number)
    if found is None:
        return None
    (row,) = with_figures([found], of=[found], user=user)
    other = row_of(rows, int(against)) if against.isdecimal() and len(against) < 10 else None
    return {
        "criterion": criterion,
        "version": criterion.versions.latest("number"),
        "row": replace(row, tests=_told(row, user)),
        "rows": rows,
        "sections": sections_of(row.prompt),
        "examples": examples_for(row.prompt, user=user),
        "other": other,
        "usual": _usual(row, rows),
        "diff": version_diff(other.prompt, row.prompt, user=user) if other else None,
        "restorable": is_restorable(criterion, row, rows),
        "notices": list(dict.fromkeys(said for one in row.measured for said in run_notices(one.run))),
    }


def _told(row: VersionRow, user: User | AnonymousUser) -> tuple[RegressionTest, ...]:
    """Its tests with what the user may be told of each; read whole, in one query."""
    ids = [test.pk for test in row.tests]
    tests = list(RegressionTest.objects.filter(pk__in=ids).select_related("chat_set").order_by("-id"))
    tell(tests, user=user)
    return tuple(tests)


def row_of(rows: Sequence[VersionRow], number: int) -> VersionRow | None:
    """The version of this number."""
    return next((row for row in rows if row.number == number), None)


def is_restorable(criterion: Criterion, row: VersionRow, rows: Sequence[VersionRow]) -> bool:
    """Whether a new version with its content would say anything new."""
    in_force = [rows[0], *([champion] if (champion := champion_of(rows)) else [])]
    said = {one.prompt.content_hash for one in in_force}
    return criterion.state == Criterion.State.ACTIVE and row.prompt.content_hash not in said


def _usual(row: VersionRow, rows: Sequence[VersionRow]) -> int | None:
    """What it is most likely compared with: what it was made from, else the one before or the champion."""
    if row.prompt.base is not None and row.prompt.base.number:
        return row.prompt.base.number
    before = next((one.number for one in rows if one.number < row.number), None)
    champion = champion_of(rows)
    return before or (champion.number if champion else None)
