"""The criterion report: one criterion of a run in detail."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from alignment.baselines.queries.page import baselines_page
from alignment.baselines.services import baselines_get
from alignment.comparison.views import comparison_view, run_and_scope
from alignment.criterion_report.queries.page import criterion_report_page
from alignment.criterion_report.queries.report import criterion_report as report_of
from common.access import permission_or_404


@permission_or_404("labeling.see_judge")
@comparison_view
def criterion_report(request: HttpRequest, run_id: int, key: str) -> HttpResponse:
    """Show the criterion report, with baselines; the address holds the filters."""
    _, scope = run_and_scope(request, run_id)
    report = report_of(scope, key, user=request.user)
    if report is None:
        raise Http404
    context = criterion_report_page(report, scope, user=request.user)
    context |= baselines_page(scope, baselines_get(scope, wait=False), only=key)
    return render(request, "alignment/criterion_report/report.html", context)
