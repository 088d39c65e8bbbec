"""Labelling jobs: the lead's list."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from labeling.access import permission_or_404
from labeling.selectors.jobs import job_rows


@permission_or_404("labeling.manage_labeling")
@require_safe
def job_list(request: HttpRequest) -> HttpResponse:
    """Every labelling job, the newest first."""
    return render(request, "labeling/job_list.html", {"jobs": job_rows()})
