"""API routes of alignment, below /api/."""

from django.urls import path

from alignment import api

urlpatterns = [
    path("runs/<int:run_id>/alignment_report/", api.RunReport.as_view(), name="api_run_report"),
    path("sets/<int:set_id>/alignment_report/", api.SetReport.as_view(), name="api_set_report"),
]
