"""API routes of alignment, below /api/."""

from django.urls import path

from alignment.api import quality, redesigns, reports, reveal

urlpatterns = [
    path("runs/<int:run_id>/alignment_report/", reports.RunReport.as_view(), name="api_run_report"),
    path("sets/<int:set_id>/alignment_report/", reports.SetReport.as_view(), name="api_set_report"),
    path("sets/<int:set_id>/quality/", quality.SetQuality.as_view(), name="api_set_quality"),
    path("jobs/<int:job_id>/quality/", quality.JobQuality.as_view(), name="api_job_quality"),
    path("criteria/<str:key>/redesign/", redesigns.RedesignApi.as_view(), name="api_criterion_redesign"),
    path("criteria/<str:key>/lineage/", redesigns.LineageApi.as_view(), name="api_criterion_lineage"),
    path("assignments/<int:assignment_id>/reveal/", reveal.RevealApi.as_view(), name="api_reveal"),
]
