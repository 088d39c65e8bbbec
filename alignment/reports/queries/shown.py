"""Which report a page shows: today's, or the newest stored one while a worker computes the next."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Max
from django.utils import timezone

from alignment.comparison.queries.answers import ReportNotComputed
from alignment.comparison.queries.cached_documents import subject_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report, ReportRefresh
from alignment.reports.queries.reports import (
    BODY_VERSION,
    alignment_report,
    is_running,
    known_report,
    report_document,
    report_json,
    report_pin,
)
from alignment.reports.queries.stored import may_see
from evaluation.models.runs import EVALUATIONS, Run
from labeling.models.people import User

# Chats × criteria that are compared while a reader waits: some six seconds.
MOST_ANSWERS = 1_000_000
# The newest runs, whose reports workers keep up to date, and those that get a first report when they end.
RUNS_REFRESHED = 20
RUNS_COMPUTED = 100
# Labels arrive one by one: a report is refreshed for them at most once in this time, a large one less often.
REFRESH_AFTER = timedelta(seconds=60)
REFRESH_AFTER_PER_ANSWER = timedelta(milliseconds=1)
# A failed refresh is repeated after this time.
AFTER_FAILURE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ShownReport:
    """The report's JSON, and the pin of what it was computed from ('' while the run is in progress).

    None where it takes too long to compute while the reader waits. `changed`: labels, texts, chats or rules
    have changed since. `refresh`: the row of the worker that computes it, if any.
    """

    report: dict[str, Any] | None
    pin: str = ""
    changed: bool = False
    refresh: ReportRefresh | None = None


def shown_report(scope: Scope, *, user: User | AnonymousUser) -> ShownReport:
    """Return what a page shows of this scope; nothing is stored.

    Raises UnknownRater as `alignment_report` does.
    """
    if is_running(scope):
        return ShownReport(alignment_report(scope))
    if (known := known_report(scope)) is not None:
        return ShownReport(report_json(known, scope), known.pin)
    refresh = refresh_of(scope)
    if (older := _newest_stored(scope, user)) is not None:
        return ShownReport(report_json(older, scope), older.pin, changed=True, refresh=refresh)
    if is_large(scope):
        return ShownReport(None, refresh=refresh)
    row = report_document(scope)
    assert row is not None  # noqa: S101  the run has finished
    return ShownReport(report_json(row, scope), row.pin)


def report_now(scope: Scope) -> dict[str, Any]:
    """Return today's report, known or computed while the reader waits.

    Raises ReportNotComputed where that takes too long, UnknownRater as `alignment_report` does.
    """
    if is_large(scope) and not is_running(scope) and known_report(scope) is None:
        raise ReportNotComputed
    return alignment_report(scope)


def is_large(scope: Scope) -> bool:
    """Return whether a worker has to compute the report."""
    return scope.run is not None and scope.members.count() * len(scope.criteria) > MOST_ANSWERS


def refresh_of(scope: Scope) -> ReportRefresh | None:
    """Return the row of the worker that computes this report."""
    return ReportRefresh.objects.filter(subject=subject_of(scope, Report.Kind.REPORT)).first()


def can_cancel(scope: Scope) -> bool:
    """Return whether readers may cancel its computation: workers keep reports of whole runs up to date."""
    return not scope.is_unfiltered or (scope.run is not None and scope.run.purpose not in EVALUATIONS)


def is_waiting(refresh: ReportRefresh | None) -> bool:
    """Return whether a worker computes the report, or will."""
    return refresh is not None and refresh.state != ReportRefresh.State.FAILED


def _newest_stored(scope: Scope, user: User | AnonymousUser) -> Report | None:
    """Return the newest stored report of a whole run; None if the user may not see it or its form is old."""
    if not scope.is_unfiltered:
        return None
    rows = Report.objects.filter(subject=subject_of(scope, Report.Kind.REPORT))
    row = rows.select_related("run__judge", "chat_set").order_by("-pk").first()
    if row is None or row.body.get("pinned", {}).get("form") != BODY_VERSION:
        return None
    keys = [entry["key"] for entry in row.body["criteria"]]
    return row if keys == [one.key for one in scope.criteria] and may_see(row, user) else None


def stale_runs() -> list[Run]:
    """Return the newest runs that ended and whose report has to be computed, newest first.

    They have none yet, or labels, texts or rules have changed since a while.
    """
    ended = Run.objects.filter(finished_at__isnull=False, purpose__in=EVALUATIONS)
    runs = list(ended.select_related("judge", "chat_set").order_by("-pk")[:RUNS_COMPUTED])
    scopes = {run.pk: Scope(run.chat_set, run) for run in runs}
    stored = _newest_pins(scopes.values())
    return [
        run for n, run in enumerate(runs) if _is_due(scopes[run.pk], stored, refreshed=n < RUNS_REFRESHED)
    ]


def _newest_pins(scopes: Iterable[Scope]) -> Mapping[str, Sequence[Any]]:
    """Return pin, time and number of chats of the newest stored report by subject; two queries."""
    subjects = [subject_of(scope, Report.Kind.REPORT) for scope in scopes]
    newest = Report.objects.filter(subject__in=subjects).values("subject").annotate(newest=Max("pk"))
    rows = Report.objects.filter(pk__in=[row["newest"] for row in newest])
    columns = ("subject", "pin", "created_at", "body__chats")
    return {subject: about for subject, *about in rows.values_list(*columns)}


def _is_due(scope: Scope, stored: Mapping[str, Sequence[Any]], *, refreshed: bool) -> bool:
    about = stored.get(subject_of(scope, Report.Kind.REPORT))
    if about is None:
        return True
    if not refreshed:
        return False
    pin, created_at, chats = about
    pause = REFRESH_AFTER + REFRESH_AFTER_PER_ANSWER * (chats or 0) * len(scope.criteria)
    return bool(created_at < timezone.now() - pause and pin != report_pin(scope))
