"""API routes of evaluation, below /api/."""

from django.urls import path

from evaluation.runs import api

urlpatterns = [
    path("runs/", api.RunList.as_view(), name="api_runs"),
    path("runs/<int:run_id>/", api.RunDetail.as_view(), name="api_run"),
    path("runs/<int:run_id>/pause/", api.RunPause.as_view(), name="api_run_pause"),
    path("runs/<int:run_id>/resume/", api.RunResume.as_view(), name="api_run_resume"),
    path("runs/<int:run_id>/cancel/", api.RunCancel.as_view(), name="api_run_cancel"),
]
