"""The baselines of a report, for the part of its page that fills itself in."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from alignment.selectors.baselines_page import baselines_page
from alignment.selectors.report_page import scope_query
from alignment.services.baselines import baselines_get
from alignment.views.reports import run_and_scope, unknown_rater_404
from labeling.access import permission_or_404


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def baselines(request: HttpRequest, run_id: int) -> HttpResponse:
    """The judge beside the baselines, computed now or by a worker; without htmx, back on the report."""
    run, scope = run_and_scope(request, run_id)
    found = baselines_get(scope)
    if request.headers.get("HX-Request") != "true":
        return redirect(reverse("alignment:report_run", args=[run.pk]) + scope_query(scope) + "#baselines")
    return render(request, "alignment/_baselines_part.html", baselines_page(scope, found))
