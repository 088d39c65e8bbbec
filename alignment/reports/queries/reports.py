"""The alignment report behind page, command and API."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from alignment.comparison.queries.answers import report_data
from alignment.comparison.queries.cached_documents import add_briefs, cached_document, pin_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core import build_report
from alignment.reports.core.status import StatusPolicy
from alignment.reports.queries.brief_effect import briefs_section
from alignment.reports.queries.engine import engine_rows, engine_section
from alignment.reports.queries.provenance import report_pins
from alignment.reports.queries.verdict_notices import verdict_notices
from labeling.models.rubric import Criterion
from labeling.people.queries.workspace import subjective_in_session_score

SEED = 20_260_101
BODY_VERSION = 12
POLICY = StatusPolicy()


def alignment_report(scope: Scope) -> dict[str, Any]:
    """Return the report's JSON, computed once for the same labels and verdicts.

    Raises UnknownRater if the ground truth is a rater without labels on these chats.
    """
    stored = stored_report(scope)
    if stored is None:
        fresh = _body(scope, subjective=subjective_in_session_score())
        return {"id": None, **fresh, "briefs": briefs_section(scope)}
    return {"id": stored.pk, **stored.body, "briefs": stored.briefs}


def stored_report(scope: Scope) -> Report | None:
    """Return the stored report, computed now if needed; None while the run is in progress.

    What the briefs of a debate changed is added as soon as its direct run exists.
    """
    if scope.run is not None and scope.run.finished_at is None:
        return None
    subjective = subjective_in_session_score()
    row = cached_document(
        scope,
        kind=Report.Kind.REPORT,
        pin=report_pin(scope, subjective=subjective),
        policy=POLICY.version,
        body=lambda: _body(scope, subjective=subjective),
    )
    if row.briefs is None:
        add_briefs(row, briefs_section(scope))
    return row


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
