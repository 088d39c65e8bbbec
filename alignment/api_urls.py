"""API routes of alignment, below /api/."""

from django.urls import path

from alignment import api, api_quality

urlpatterns = [
    path("runs/<int:run_id>/alignment_report/", api.RunReport.as_view(), name="api_run_report"),
    path("sets/<int:set_id>/alignment_report/", api.SetReport.as_view(), name="api_set_report"),
    path("sets/<int:set_id>/quality/", api_quality.SetQuality.as_view(), name="api_set_quality"),
    path("jobs/<int:job_id>/quality/", api_quality.JobQuality.as_view(), name="api_job_quality"),
]
