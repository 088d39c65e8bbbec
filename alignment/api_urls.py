"""API routes of alignment, below /api/."""

from django.urls import path

from alignment.api import quality, reports, reveal, suggestions

urlpatterns = [
    path("runs/<int:run_id>/alignment_report/", reports.RunReport.as_view(), name="api_run_report"),
    path("sets/<int:set_id>/alignment_report/", reports.SetReport.as_view(), name="api_set_report"),
    path("sets/<int:set_id>/quality/", quality.SetQuality.as_view(), name="api_set_quality"),
    path("jobs/<int:job_id>/quality/", quality.JobQuality.as_view(), name="api_job_quality"),
    path(
        "criteria/<str:key>/suggestions/",
        suggestions.CriterionSuggestions.as_view(),
        name="api_criterion_suggestions",
    ),
    path("suggestions/<int:suggestion_id>/", suggestions.SuggestionDetail.as_view(), name="api_suggestion"),
    path(
        "suggestions/<int:suggestion_id>/use/",
        suggestions.SuggestionUseApi.as_view(),
        name="api_suggestion_use",
    ),
    path("assignments/<int:assignment_id>/reveal/", reveal.RevealApi.as_view(), name="api_reveal"),
]
