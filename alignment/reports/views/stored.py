"""Stored reports: the page to link to and to print, and the table file."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from alignment.certificates.queries.certificates import certificates_of_report
from alignment.reports.core.csv_rows import HEAD
from alignment.reports.queries.stored import stored_found, stored_lines, stored_page
from common.access import found_or_404, permission_or_404
from common.downloads import table_file


@permission_or_404("labeling.see_judge")
@require_safe
def report_stored(request: HttpRequest, report_id: int) -> HttpResponse:
    """A report with the figures and words it was stored with."""
    row = found_or_404(stored_found(report_id, user=request.user))
    certificates = certificates_of_report(row, user=request.user)
    context = stored_page(row) | {"certificates": certificates}
    return render(request, "alignment/reports/stored.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def report_table(request: HttpRequest, report_id: int) -> HttpResponse:
    """The same for spreadsheets."""
    row = found_or_404(stored_found(report_id, user=request.user))
    return table_file(stored_lines(row), HEAD, name=f"alignment-report-{row.pk}.csv")
