"""Compute the reports that readers wait for, and those of runs that ended or whose labels changed."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.cache import caches
from django.db.models import QuerySet
from django.utils import timezone

from alignment.comparison.queries.cached_documents import documents_stored, subject_of
from alignment.comparison.queries.requested_scope import visible_scope
from alignment.comparison.queries.scope import Scope, part_of, scope_of_part
from alignment.comparison.queries.scope_summary import scope_summary
from alignment.models.reports import Report, ReportRefresh
from alignment.reports.queries.brief_effect import briefs_section
from alignment.reports.queries.chat_lists import cached_cells
from alignment.reports.queries.reports import report_document, report_pin
from alignment.reports.queries.shown import AFTER_FAILURE, stale_runs
from alignment.reports.queries.stored import scope_of
from evaluation.models.judges import Engine
from evaluation.models.runs import Run, WorkerLease
from evaluation.runs.worker.leased_rows import LeasedRows, has_living_worker
from evaluation.runs.worker.leases import MOST_TRIES, LeaseLost, lease_beat

log = logging.getLogger(__name__)

REFRESH = "alignment.tasks.refresh_report"
# Reports that wait at the same time for runs that ended and labels that changed; readers may add theirs.
MOST_WAITING = 4
# Seconds between two looks at what has changed: reading the state of all criteria is not free.
LOOK_EVERY = 10
# Engines with which a judge may decide some criteria by debate.
DEBATING = (Engine.DEBATE, Engine.AUTO)
# Reports that one direct run completes.
MOST_COMPLETED = 20


class _Refreshes(LeasedRows[ReportRefresh]):
    model = ReportRefresh
    task = REFRESH
    open_state = ReportRefresh.State.OPEN
    working_state = ReportRefresh.State.WORKING
    related = ("run__chat_set", "run__judge")
    # The dead worker consumed the task, so the row needs a new one at once.
    reopen = {"rung_at": None}

    def must_wait(self, row: ReportRefresh) -> bool:
        """Whether another report of the same run is being computed: they read the same answers."""
        others = ReportRefresh.objects.filter(run=row.run_id, state=self.working_state)
        return any(has_living_worker(other) for other in others.select_related("lease"))

    def fail(self, row: ReportRefresh) -> None:
        row.state = ReportRefresh.State.FAILED
        row.save(update_fields=["state"])
        log.error("a report of run %s could not be computed %s times", row.run_id, MOST_TRIES)

    def log_death(self, row: ReportRefresh) -> None:
        log.warning("a report of run %s is computed again: its worker died", row.run_id)


REFRESHES = _Refreshes()


def refresh_work(refresh_id: int) -> Run | None:
    """Compute and store one report; return its run, or None unless it was open.

    The worker logs what is raised. A report is tried three times.
    """
    with REFRESHES.work(refresh_id) as (row, lease):
        if row is None:
            return None
        try:
            _refresh(row, lease)
        except LeaseLost:
            log.warning("report of run %s: cancelled, or another worker took over", row.run_id)
            return None
        REFRESHES.owned(row.pk, lease).delete()
        return row.run


def reports_sweep() -> None:
    """Ask for the reports of runs that ended or whose labels have changed, and enqueue what waits."""
    if caches["default"].add("reports_looked_at", True, LOOK_EVERY):
        for run in stale_runs():
            if ReportRefresh.objects.exclude(state=ReportRefresh.State.FAILED).count() >= MOST_WAITING:
                break  # the others are found again
            scope = Scope(run.chat_set, run)
            subject = subject_of(scope, Report.Kind.REPORT)
            failed_refreshes(subject, old=True).delete()
            ReportRefresh.objects.get_or_create(
                subject=subject, defaults={"run": run, "part": part_of(scope)}
            )
    REFRESHES.sweep()


def failed_refreshes(subject: str, *, old: bool = False) -> QuerySet[ReportRefresh]:
    """Return the failed refresh of a subject; with `old`, only if it may be repeated by now."""
    rows = ReportRefresh.objects.filter(subject=subject, state=ReportRefresh.State.FAILED)
    return rows.filter(asked_at__lt=timezone.now() - AFTER_FAILURE) if old else rows


def report_store(scope: Scope, *, share: bool) -> Report | None:
    """Compute and store a report of any size; None for a run in progress and for a part without chats."""
    with documents_stored():
        row = report_document(scope)
    if row is None or row.pk is None:
        return None
    new: dict[str, Any] = {"shared": True} if share and not row.shared else {}
    if row.briefs is None and (briefs := briefs_section(scope)) is not None:
        new["briefs"] = briefs
    return _with(row, new) if new else row


def _with(row: Report, new: Mapping[str, Any]) -> Report:
    """Set columns of a stored report; store it again if a newer one has just replaced it."""
    for name, value in new.items():
        setattr(row, name, value)
    if not Report.objects.filter(pk=row.pk).update(**new):
        row.save(force_insert=True)
    return row


def _refresh(row: ReportRefresh, lease: WorkerLease) -> None:
    """Store the report and, for a whole run, what its pages read beside it."""
    scope = scope_of_part(row.run, row.part)
    for one in _variants(scope):
        report_store(one, share=row.share)
        lease_beat(lease.pk)
        if not REFRESHES.owned(row.pk, lease).exists():
            raise LeaseLost  # cancelled, or taken over
        with documents_stored():
            scope_summary(one)
            cached_cells(one)
        lease_beat(lease.pk)
    _add_briefs(row.run)


def _variants(scope: Scope) -> Iterator[Scope]:
    """The scope and, of a whole run, what users without access to the holdout see of it."""
    yield scope
    if scope.is_unfiltered:
        others = visible_scope(scope, user=AnonymousUser())
        if others.without_holdout != scope.without_holdout:
            yield others


def _add_briefs(run: Run) -> None:
    """Complete the newest reports of debates over this set, for which the run may be the direct one."""
    rows = Report.objects.filter(kind=Report.Kind.REPORT, briefs__isnull=True, run__chat_set=run.chat_set)
    debates = rows.filter(run__judge__engine__in=DEBATING).exclude(run=run).order_by("-pk")
    for row in debates.select_related("run__judge", "chat_set")[:MOST_COMPLETED]:
        scope = scope_of(row)
        if report_pin(scope) == row.pin and (briefs := briefs_section(scope)) is not None:
            Report.objects.filter(pk=row.pk).update(briefs=briefs)
