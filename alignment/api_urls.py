"""API routes of alignment, below /api/."""

from django.urls import path

from alignment.api import reports, reveal

urlpatterns = [
    path("runs/<int:run_id>/alignment_report/", reports.RunReport.as_view(), name="api_run_report"),
    path("sets/<int:set_id>/alignment_report/", reports.SetReport.as_view(), name="api_set_report"),
    path("assignments/<int:assignment_id>/reveal/", reveal.RevealApi.as_view(), name="api_reveal"),
]
