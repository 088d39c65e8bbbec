"""Store a report: shared under an address of its own, or for the readers of its page."""

from functools import partial
from typing import Any

from django.db import transaction

from alignment.comparison.queries.answers import UnknownRater, knows_rater
from alignment.comparison.queries.cached_documents import subject_of
from alignment.comparison.queries.scope import Scope, part_of
from alignment.models.reports import Report, ReportRefresh
from alignment.reports.queries.reports import is_running, known_report
from alignment.reports.queries.shown import can_cancel, is_large
from alignment.reports.worker import REFRESHES, failed_refreshes, report_store
from common.problems import InputProblem


class ReportRefused(InputProblem):
    """A report that cannot be shared or updated; the message says why."""


def report_share(scope: Scope) -> Report | None:
    """Store today's report under a link that stays; None where a worker computes it, which takes longer.

    Raises ReportRefused for a run in progress and for a part without chats; UnknownRater as
    `alignment_report` does.
    """
    return _stored(scope, share=True)


def report_update(scope: Scope) -> Report | None:
    """Store today's report for the readers of its page, in place of the last one; else as `report_share`."""
    return _stored(scope, share=False)


def _stored(scope: Scope, *, share: bool) -> Report | None:
    if is_running(scope):
        raise ReportRefused("the run is in progress: its report can be stored once it has finished")
    if is_large(scope) and known_report(scope) is None:
        _enqueue(scope, share=share)
        return None
    row = report_store(scope, share=share)
    if row is None:
        raise ReportRefused("the report has no chats")
    failed_refreshes(subject_of(scope, Report.Kind.REPORT)).delete()
    return row


def _enqueue(scope: Scope, *, share: bool) -> None:
    """Let a worker compute the report; requests for the same one are one row."""
    if not knows_rater(scope):
        raise UnknownRater(f"rater {scope.rater!r} has no labels on these chats")
    subject = subject_of(scope, Report.Kind.REPORT)
    with transaction.atomic():
        failed_refreshes(subject, old=True).delete()
        asked: dict[str, Any] = {"run": scope.run, "part": part_of(scope), "share": share}
        row, created = ReportRefresh.objects.get_or_create(subject=subject, defaults=asked)
        if row.state == ReportRefresh.State.FAILED:
            raise ReportRefused("the last computation failed: try again in an hour")
        if share and not row.share:
            ReportRefresh.objects.filter(pk=row.pk).update(share=True)
        if created:
            transaction.on_commit(partial(REFRESHES.enqueue, row.pk))


def report_cancel(scope: Scope) -> None:
    """Cancel the computation that waits or runs; its worker stops at its next step. Raises ReportRefused."""
    if not can_cancel(scope):
        raise ReportRefused("workers keep the reports of whole runs up to date")
    rows = ReportRefresh.objects.filter(subject=subject_of(scope, Report.Kind.REPORT))
    rows.exclude(state=ReportRefresh.State.FAILED).delete()
