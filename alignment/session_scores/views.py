"""The session scores of a run, as a part of its page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from alignment.comparison.views import comparison_view, run_and_scope
from alignment.session_scores.queries import run_scores
from common.access import permission_or_404


@permission_or_404("labeling.see_judge")
@comparison_view
@require_safe
def run_session_scores(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show a run's session scores, loaded later because reading every answer can take seconds."""
    run, scope = run_and_scope(request, run_id)
    context = {"run": run, "scores": run_scores(scope)}
    return render(request, "alignment/session_scores/_run.html", context)
