"""Baselines of a report or of one criterion: the htmx fragment of their pages."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from alignment.baselines.queries.page import baselines_page
from alignment.baselines.services import baselines_ask, baselines_cancel, baselines_get
from alignment.comparison.views import comparison_view, run_and_scope
from alignment.reports.queries.page import scope_query
from common.access import permission_or_404


@permission_or_404("labeling.see_judge")
@require_http_methods(["GET", "HEAD", "POST"])
@comparison_view
def baselines(request: HttpRequest, run_id: int) -> HttpResponse:
    """Compare the judge with the baselines; a POST computes what is not stored, or with `cancel` stops that.

    Without htmx, redirect to the page.
    The query parameter `criterion` limits it to the criterion of this key.
    """
    run, scope = run_and_scope(request, run_id)
    key = request.GET.get("criterion", "")
    if key and key not in {row.key for row in scope.criteria}:
        raise Http404
    if "cancel" in request.POST:
        baselines_cancel(scope)
    asked = request.method == "POST" and "cancel" not in request.POST
    result = baselines_ask(scope) if asked else baselines_get(scope)
    if request.headers.get("HX-Request") == "true":
        return render(request, "alignment/baselines/_part.html", baselines_page(scope, result, only=key))
    page = (
        reverse("alignment:criterion_report", args=[run.pk, key])
        if key
        else reverse("alignment:report_run", args=[run.pk])
    )
    return redirect(page + scope_query(scope) + "#baselines")
