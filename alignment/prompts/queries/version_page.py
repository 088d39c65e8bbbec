"""The page of one prompt version: text, alignment, and changes since another version."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AnonymousUser

from alignment.comparison.queries.disclosure import hide_small_counts
from alignment.models.regressions import RegressionTest
from alignment.prompts.queries.sections import examples_for, sections_of, version_diff
from alignment.prompts.queries.versions import VersionRow, champion_of, version_rows, with_figures
from evaluation.prompts.queries.definitions import notices_of, older_definitions
from evaluation.runs.queries.runs import run_notices
from labeling.models.people import User
from labeling.models.rubric import Criterion


def version_page(
    *, criterion: Criterion, number: int, user: User | AnonymousUser, against: str = ""
) -> dict[str, Any] | None:
    """Return the template context, or None if there is no such version. An unknown `against` is ignored."""
    rows = version_rows(criteria=[criterion])[criterion.pk]
    plain = row_of(rows, number)
    if plain is None:
        return None
    (row,) = with_figures([plain], of=[plain], user=user)
    other = row_of(rows, int(against)) if against.isdecimal() and len(against) < 10 else None
    newest = criterion.versions.latest("number")
    older = older_definitions([row.prompt], newest={criterion.pk: newest})
    return {
        "criterion": criterion,
        "version": newest,
        "row": replace(row, tests=_visible_tests(row, user)),
        "rows": rows,
        "sections": sections_of(row.prompt),
        "examples": examples_for(row.prompt, user=user),
        "other": other,
        "compared_number": other.number if other else _usual(row, rows),
        "diff": version_diff(other.prompt, row.prompt, user=user) if other else None,
        "restorable": is_restorable(criterion, row, rows),
        "notices": [
            *notices_of(older.values()),
            *dict.fromkeys(text for one in row.metrics for text in run_notices(one.run)),
        ],
    }


def _visible_tests(row: VersionRow, user: User | AnonymousUser) -> tuple[RegressionTest, ...]:
    """Return its tests with what the user may see of each; one query."""
    ids = [test.pk for test in row.tests]
    tests = list(RegressionTest.objects.filter(pk__in=ids).select_related("chat_set").order_by("-id"))
    hide_small_counts(tests, user=user)
    return tuple(tests)


def row_of(rows: Sequence[VersionRow], number: int) -> VersionRow | None:
    """Return the version with this number."""
    return next((row for row in rows if row.number == number), None)


def is_restorable(criterion: Criterion, row: VersionRow, rows: Sequence[VersionRow]) -> bool:
    """Return whether its content differs from the champion and the newest version of an active criterion."""
    current = [rows[0], *([champion] if (champion := champion_of(rows)) else [])]
    hashes = {one.prompt.content_hash for one in current}
    return criterion.state == Criterion.State.ACTIVE and row.prompt.content_hash not in hashes


def _usual(row: VersionRow, rows: Sequence[VersionRow]) -> int | None:
    """Return the number to compare with: its base, otherwise the version before or the champion."""
    if row.prompt.base is not None and row.prompt.base.number:
        return row.prompt.base.number
    before = next((one.number for one in rows if one.number < row.number), None)
    champion = champion_of(rows)
    return before or (champion.number if champion else None)
