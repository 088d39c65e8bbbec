"""The alignment report behind page, command and API."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from alignment.comparison.queries.answers import report_data
from alignment.comparison.queries.cached_documents import (
    cached_document,
    hash_of,
    known_document,
    pin_of,
    remembered,
)
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core import build_report
from alignment.reports.core.status import StatusPolicy
from alignment.reports.queries.brief_effect import briefs_run, briefs_section
from alignment.reports.queries.engine import engine_rows, engine_section
from alignment.reports.queries.provenance import report_pins
from alignment.reports.queries.verdict_notices import verdict_notices
from labeling.models.rubric import Criterion
from labeling.people.queries.workspace import subjective_in_session_score

SEED = 20_260_101
BODY_VERSION = 13
POLICY = StatusPolicy()


def alignment_report(scope: Scope) -> dict[str, Any]:
    """Return the report's JSON, computed once for the same labels and verdicts.

    Its id is that of the shared report with these results, null if there is none.
    Raises UnknownRater if the ground truth is a rater without labels on these chats.
    """
    row = report_document(scope)
    if row is None:
        fresh = _body(scope, subjective=subjective_in_session_score())
        return {"id": None, **fresh, "briefs": briefs_section(scope)}
    return report_json(row, scope)


def report_json(row: Report, scope: Scope) -> dict[str, Any]:
    """Return the JSON of a report that is stored or remembered."""
    briefs = row.briefs or _briefs(row, scope)
    return {"id": row.pk if row.shared else None, **row.body, "briefs": briefs}


def report_document(scope: Scope) -> Report | None:
    """Return the report of today's labels and verdicts; None while the run is in progress."""
    if is_running(scope):
        return None
    subjective = subjective_in_session_score()
    return cached_document(
        scope,
        kind=Report.Kind.REPORT,
        pin=report_pin(scope, subjective=subjective),
        policy=POLICY.version,
        body=lambda: _body(scope, subjective=subjective),
    )


def known_report(scope: Scope) -> Report | None:
    """Return the report of today's labels and verdicts if it is stored or remembered."""
    return known_document(Report(kind=Report.Kind.REPORT, pin=report_pin(scope)))


def is_running(scope: Scope) -> bool:
    """Return whether the run has not finished: its report changes with each verdict."""
    return scope.run is not None and scope.run.finished_at is None


def _briefs(row: Report, scope: Scope) -> dict[str, Any] | None:
    """Return what the briefs changed, for a report that was computed before the direct run existed."""
    run = briefs_run(scope)
    if run is None:
        return None
    found: dict[str, Any] = remembered(
        hash_of([row.pin, "briefs", run.pk]), lambda: briefs_section(scope, run)
    )
    return found


def report_pin(
    scope: Scope,
    *,
    criteria: Sequence[Criterion] | None = None,
    numbers: Mapping[int, int] | None = None,
    subjective: bool | None = None,
) -> str:
    """Return the pin of a report of this scope stored now; `criteria` and `numbers` as in `pin_of`.

    `subjective` : whether subjective criteria count in the session score, if already loaded.
    """
    rows = scope.criteria if criteria is None else criteria
    counted = subjective_in_session_score() if subjective is None else subjective
    scores = [counted, [row.pk for row in rows if row.critical]]
    return pin_of(scope, BODY_VERSION, POLICY.version, SEED, scores, criteria=rows, numbers=numbers)


def _body(scope: Scope, *, subjective: bool) -> dict[str, Any]:
    judge = scope.run.judge if scope.run else None
    head: dict[str, Any] = {
        **scope.as_json(),
        "judge": judge
        and {
            "name": judge.name,
            "fingerprint": judge.fingerprint,
            "engine": judge.engine,
            "model": judge.model,
        },
    }
    verdicts = engine_rows(scope)
    data = report_data(scope, verdicts)
    report = build_report(data, policy=POLICY, seed=SEED, subjective=subjective)
    head |= {"chats": report.pop("chats"), "generated_at": timezone.now().isoformat()}
    pinned = report_pins(scope, data, form=BODY_VERSION)
    pinned["notices"] += verdict_notices(report["criteria"], scope, chats=head["chats"])
    return head | report | {"engine": engine_section(scope, data, verdicts), "pinned": pinned}
